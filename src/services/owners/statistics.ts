import type { MessageInitShape } from '@bufbuild/protobuf';
import type { ServiceImpl } from '@connectrpc/connect';
import type { ChoiceCountsSchema, OwnersService } from '../../../gen/headlessforms/v1/owners_pb.js';
import { localeOf } from '../../domain/answers/answer-texts.ts';
import type { Field, FormDefinition } from '../../domain/definition/definition.ts';
import { translate } from '../../domain/definition/translate.ts';
import { yesOrNo } from '../../domain/fields/boolean.ts';
import { fieldRules } from '../../domain/fields/index.ts';
import { isObject, type Json, ownValue } from '../../domain/json/json.ts';
import { DAY_MS } from '../../domain/limits/limits.ts';
import { preferredLanguages } from '../../domain/text/accept-language.ts';
import { daysIn, isTimeZone } from '../../domain/text/days.ts';
import type { ShownSubmission } from '../../store/submissions/submissions.ts';
import type { ServiceContext } from '../context.ts';
import { badParameter } from '../request-values.ts';
import { confirmedForm } from './owned-form.ts';
import type { Scan } from './search.ts';

/** The RPC that counts a form's submissions by day, and the answers to its questions that are no texts. */
export function statisticsMethods(context: ServiceContext, scan: Scan) {
  const { forms, now, audit } = context;
  return {
    async getOwnedFormStatistics({ formId, timeZone }, call) {
      const zone = timeZone || 'UTC';
      if (!isTimeZone(zone)) throw badParameter('time_zone', 'invalid_string', 'Expected a time zone');
      const form = await confirmedForm(context, call, formId);
      const preferred = preferredLanguages(call.requestHeader.get('accept-language') ?? '');
      const definition = translate((await forms.version(form.currentVersionId)).definition, preferred);
      const dayOf = daysIn(zone);
      const days = lastDays(dayOf(now()));
      const locale = localeOf(definition, preferred);
      const questions = questionsOf(definition, locale);
      const { scanned, truncated } = await scan({ formId, filter: {} }, call, (submission) => {
        const day = dayOf(submission.createdAt.getTime());
        const count = days.get(day);
        if (count !== undefined) days.set(day, count + 1);
        for (const asked of questions) countAnswer(asked, submission);
        return true;
      });
      audit.note(call, { projectId: form.projectId, formId });
      return {
        days: [...days].map(([date, count]) => ({ date, count })),
        choices: questions.map((asked) => countsOf(asked, locale)),
        countedCount: scanned,
        truncated,
      };
    },
  } satisfies Partial<ServiceImpl<typeof OwnersService>>;
}

/** The last days, oldest first, each with no submission yet. */
function lastDays(today: string): Map<string, number> {
  const days = Array.from({ length: DAYS }, (_, n) => new Date(Date.parse(today) - (DAYS - 1 - n) * DAY_MS));
  return new Map(days.map((day) => [day.toISOString().slice(0, DATE_CHARS), 0]));
}

/** What can be counted of a form's questions; each row of a matrix is one. */
function questionsOf({ fields }: FormDefinition, locale: string): Question[] {
  return fields.flatMap((field) => {
    const { id, type, label, options = [], rows = [], min, max } = field;
    const points = (from: unknown, to: unknown) => {
      const [first, last] = [Number(from), Number(to)];
      return Array.from({ length: last - first + 1 }, (_, n) => ({
        value: first + n,
        label: String(first + n),
      }));
    };
    const yes = [true, false].map((value) => ({ value, label: yesOrNo(value, locale) }));
    const isPromoter = min === 0 && max === 10;
    const byType: Partial<Record<Field['type'], () => Question[]>> = {
      boolean: () => [question(field, yes)],
      checkbox: () => [question(field, yes)],
      rating: () => [question(field, points(1, max), { isNumber: true })],
      scale: () => [question(field, points(min, max), { isNumber: true, isPromoter })],
      number: () => [question(field, [], { isNumber: true, isOpen: true })],
      ranking: () => [question(field, options, { isRanking: true })],
      matrix: () =>
        rows.map((row) => question({ id, label: `${label}: ${row.label}` }, options, { row: row.value })),
    };
    const chosen = fieldRules[type].choosesOptions === true ? [question(field, options)] : [];
    return byType[type]?.() ?? chosen;
  });
}

function question(
  { id: fieldId, label }: Pick<Field, 'id' | 'label'>,
  options: readonly { value: Json; label: string }[],
  more: Partial<Question> = {},
): Question {
  const counts = new Map(
    options.map((option) => [option.value, { label: option.label, count: 0, rankSum: 0 }]),
  );
  return { fieldId, label, answeredCount: 0, otherCount: 0, counts, numbers: [], ...more };
}

function countAnswer(asked: Question, { answers }: ShownSubmission): void {
  const whole = ownValue(answers, asked.fieldId);
  const answer = asked.row === undefined ? whole : isObject(whole) ? ownValue(whole, asked.row) : undefined;
  if (answer === null || answer === undefined) return;
  asked.answeredCount += 1;
  for (const [index, value] of [answer].flat().entries()) {
    if (asked.isNumber === true && typeof value === 'number') asked.numbers.push(value);
    const option = asked.counts.get(value as Json);
    if (option !== undefined) {
      option.count += 1;
      option.rankSum += index + 1;
    } else if (asked.isOpen !== true) asked.otherCount += 1;
  }
}

/** What was counted, as the RPC returns it. */
function countsOf(asked: Question, locale: string): MessageInitShape<typeof ChoiceCountsSchema> {
  const { fieldId, label, answeredCount, otherCount, counts, numbers, isRanking, isPromoter, isOpen } = asked;
  const share = (isCounted: (value: number) => boolean) => numbers.filter(isCounted).length / numbers.length;
  const score = 100 * (share((value) => value >= 9) - share((value) => value <= 6));
  const hasNumbers = numbers.length > 0;
  return {
    fieldId,
    label,
    answeredCount,
    otherCount,
    ...(hasNumbers && { average: numbers.reduce((sum, value) => sum + value, 0) / numbers.length }),
    ...(hasNumbers && isPromoter === true && { netPromoterScore: Math.round(score) }),
    options:
      isOpen === true
        ? rangesOf(numbers, locale)
        : [...counts.values()].map(({ label: option, count, rankSum }) => ({
            label: option,
            count,
            ...(isRanking === true && count > 0 && { averagePlace: rankSum / count }),
          })),
  };
}

/** How often each number was answered, or where there are many, those of each tenth of their range. */
function rangesOf(numbers: readonly number[], locale: string): { label: string; count: number }[] {
  const inWords = (value: number) =>
    new Intl.NumberFormat(locale, { maximumFractionDigits: 2 }).format(value);
  const distinct = [...new Set(numbers)].sort((one, other) => one - other);
  if (distinct.length <= RANGES) {
    return distinct.map((value) => ({
      label: inWords(value),
      count: numbers.filter((each) => each === value).length,
    }));
  }
  const [first = 0, last = 0] = [distinct[0], distinct.at(-1)];
  const width = (last - first) / RANGES;
  const counts = Array.from({ length: RANGES }, () => 0);
  for (const value of numbers) {
    const range = Math.min(RANGES - 1, Math.floor((value - first) / width));
    counts[range] = (counts[range] ?? 0) + 1;
  }
  return counts.map((count, n) => ({
    label: `${inWords(first + n * width)} – ${inWords(first + (n + 1) * width)}`,
    count,
  }));
}

const RANGES = 10;
const DAYS = 30;
/** `YYYY-MM-DD` */
const DATE_CHARS = 10;

type Question = {
  fieldId: string;
  label: string;
  answeredCount: number;
  otherCount: number;
  /** By the option's value. `rankSum`: the sum of its ranks. */
  counts: Map<Json, { label: string; count: number; rankSum: number }>;
  /** The answers of a question for numbers. */
  numbers: number[];
  isNumber?: boolean;
  /** Whether any number may be answered. */
  isOpen?: boolean;
  isPromoter?: boolean;
  isRanking?: boolean;
  /** Of a matrix. */
  row?: string;
};
