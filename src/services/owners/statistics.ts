import type { ServiceImpl } from '@connectrpc/connect';
import type { OwnersService } from '../../../gen/headlessforms/v1/owners_pb.js';
import type { FormDefinition } from '../../domain/definition/definition.ts';
import { fieldRules } from '../../domain/fields/index.ts';
import { ownValue } from '../../domain/json/json.ts';
import { DAY_MS } from '../../domain/limits/limits.ts';
import type { Submission } from '../../store/submissions/submissions.ts';
import type { ServiceContext } from '../context.ts';
import { confirmedForm } from './owned-form.ts';
import type { Scan } from './search.ts';

/** The RPC that counts a form's submissions by day and the answers to its questions with a choice. */
export function statisticsMethods(context: ServiceContext, scan: Scan) {
  const { forms, now, audit } = context;
  return {
    async getOwnedFormStatistics({ formId }, call) {
      const form = await confirmedForm(context, call, formId);
      const { definition } = await forms.version(form.currentVersionId);
      const days = lastDays(now());
      const choices = choicesOf(definition);
      const { scanned, truncated } = await scan({ formId, filter: {} }, call, (submission) => {
        const day = submission.createdAt.toISOString().slice(0, DATE_CHARS);
        const count = days.get(day);
        if (count !== undefined) days.set(day, count + 1);
        for (const choice of choices) countChoice(choice, submission);
        return true;
      });
      audit.note(call, { projectId: form.projectId, formId });
      return {
        days: [...days].map(([date, count]) => ({ date, count })),
        choices: choices.map(({ counts, ...choice }) => ({
          ...choice,
          options: [...counts.values()],
        })),
        countedCount: scanned,
        truncated,
      };
    },
  } satisfies Partial<ServiceImpl<typeof OwnersService>>;
}

/** The last days in UTC, oldest first, each with no submission yet. */
function lastDays(now: number): Map<string, number> {
  const days = Array.from({ length: DAYS }, (_, n) => new Date(now - (DAYS - 1 - n) * DAY_MS));
  return new Map(days.map((day) => [day.toISOString().slice(0, DATE_CHARS), 0]));
}

function choicesOf({ fields }: FormDefinition): Choice[] {
  return fields.flatMap(({ id: fieldId, type, label, options = [] }) => {
    if (fieldRules[type].choosesOptions !== true) return [];
    const counts = new Map(options.map((option) => [option.value, { label: option.label, count: 0 }]));
    return [{ fieldId, label, answeredCount: 0, otherCount: 0, counts }];
  });
}

function countChoice(choice: Choice, { answers }: Submission): void {
  const answer = ownValue(answers, choice.fieldId);
  if (answer === null || answer === undefined) return;
  choice.answeredCount += 1;
  for (const value of Array.isArray(answer) ? answer : [answer]) {
    const option = typeof value === 'string' ? choice.counts.get(value) : undefined;
    if (option === undefined) choice.otherCount += 1;
    else option.count += 1;
  }
}

const DAYS = 30;
/** `YYYY-MM-DD` */
const DATE_CHARS = 10;

type Choice = {
  fieldId: string;
  label: string;
  answeredCount: number;
  otherCount: number;
  /** By the option's value. */
  counts: Map<string, { label: string; count: number }>;
};
