import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import type { ServiceImpl } from '@connectrpc/connect';
import type { ChoiceCountsSchema, OwnersService } from '../../../gen/headlessforms/v1/owners_pb.js';
import { localeOf } from '../../domain/answers/answer-texts.ts';
import { isReplaced } from '../../domain/contracts/field-changes.ts';
import type { Field } from '../../domain/definition/definition.ts';
import { yesOrNo } from '../../domain/fields/boolean.ts';
import { fieldRules } from '../../domain/fields/index.ts';
import { isObject, type Json, ownValue } from '../../domain/json/json.ts';
import { DAY_MS } from '../../domain/limits/limits.ts';
import { preferredLanguages } from '../../domain/text/accept-language.ts';
import { daysIn, isTimeZone } from '../../domain/text/days.ts';
import { type Asked, type AskedField, listAskedFields } from '../../store/forms/versions.ts';
import type { ShownSubmission } from '../../store/submissions/submissions.ts';
import type { ServiceContext } from '../context.ts';
import { createVersionReader, type ReadVersion } from '../forms/readable-versions.ts';
import { badParameter } from '../request-values.ts';
import { submissionRangeOf } from '../submissions/submission-proto.ts';
import { confirmedForm } from './owned-form.ts';
import type { Scan } from './search.ts';

/** The RPC that counts a form's submissions by day, and the answers to its questions that are no texts. */
export function statisticsMethods(context: ServiceContext, scan: Scan) {
  const { database, forms, now, audit } = context;
  return {
    async getOwnedFormStatistics({ formId, timeZone, filter }, call) {
      const zone = timeZone || 'UTC';
      if (!isTimeZone(zone)) throw badParameter('time_zone', 'invalid_string', 'Expected a time zone');
      const form = await confirmedForm(context, call, formId);
      const preferred = preferredLanguages(call.requestHeader.get('accept-language') ?? '');
      const read = createVersionReader(forms, form.currentVersionId, preferred);
      const locale = localeOf(await read(form.currentVersionId), preferred);
      const charts = createCharts(await listAskedFields(database, formId), read, locale);
      await charts.of(form.currentVersionId);
      const dayOf = daysIn(zone);
      const until = filter?.createdBefore === undefined ? now() : timestampMs(filter.createdBefore) - 1;
      const days = lastDays(dayOf(Math.min(now(), until)));
      const range = { formId, filter: submissionRangeOf(filter) };
      const { scanned, truncated } = await scan(range, call, async (submission) => {
        const day = dayOf(submission.createdAt.getTime());
        const count = days.get(day);
        if (count !== undefined) days.set(day, count + 1);
        for (const asked of await charts.of(submission.versionId)) countAnswer(asked, submission);
        return true;
      });
      audit.note(call, { projectId: form.projectId, formId });
      return {
        days: [...days].map(([date, count]) => ({ date, count })),
        choices: charts.all().map((asked) => countsOf(asked, locale)),
        countedCount: scanned,
        truncated,
      };
    },
  } satisfies Partial<ServiceImpl<typeof OwnersService>>;
}

/**
 * The questions of a form's versions, of which those with one meaning are one. `of` gives those that count the answers
 * to a version, `all` those of the versions that were asked for, in the order of the fields.
 */
function createCharts({ fields: columns }: Asked, read: ReadVersion, locale: string) {
  const charts = new Map<AskedField, Question[]>(columns.map((column) => [column, []]));
  const byVersion = new Map<string, Question[]>();
  return {
    all: () => [...charts.values()].flat(),
    async of(versionId: string): Promise<readonly Question[]> {
      const known = byVersion.get(versionId);
      if (known !== undefined) return known;
      const { fields } = await read(versionId);
      const questions = fields.flatMap((field) => {
        const column = columns.find(({ id, versions }) => id === field.id && versions.has(versionId));
        const chart = column && charts.get(column);
        return chart ? questionsOf(field, locale).map((asked) => joined(chart, asked, column.mark)) : [];
      });
      byVersion.set(versionId, questions);
      return questions;
    },
  };
}

/** The question of a chart that counts these answers, with all options by all their names. */
function joined(chart: Question[], asked: Question, mark: string): Question {
  const same = chart.find(({ row }) => row === asked.row);
  if (same === undefined) {
    chart.push({ ...asked, label: asked.label + mark });
    return chart.at(-1) ?? asked;
  }
  const addNames = (names: string[], others: readonly string[]) =>
    names.push(...others.filter((name) => names.every((known) => isReplaced(known, name))));
  addNames(same.rowNames, asked.rowNames);
  for (const [value, option] of asked.counts) {
    const known = same.counts.get(value);
    if (known === undefined) same.counts.set(value, option);
    else addNames(known.names, option.names);
  }
  return same;
}

/** The last days, oldest first, each with no submission yet. */
function lastDays(today: string): Map<string, number> {
  const days = Array.from({ length: DAYS }, (_, n) => new Date(Date.parse(today) - (DAYS - 1 - n) * DAY_MS));
  return new Map(days.map((day) => [day.toISOString().slice(0, DATE_CHARS), 0]));
}

/** What can be counted of a question; each row of a matrix is one. */
function questionsOf(field: Field, locale: string): Question[] {
  const { type, options = [], rows = [], min, max } = field;
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
    matrix: () => rows.map(({ value, label }) => question(field, options, { row: value, rowNames: [label] })),
  };
  const chosen = fieldRules[type].choosesOptions === true ? [question(field, options)] : [];
  return byType[type]?.() ?? chosen;
}

function question(
  { id: fieldId, label }: Pick<Field, 'id' | 'label'>,
  options: readonly { value: Json; label: string }[],
  more: Partial<Question> = {},
): Question {
  const counts = new Map(
    options.map((option) => [option.value, { names: [option.label], count: 0, rankSum: 0 }]),
  );
  return { fieldId, label, rowNames: [], answeredCount: 0, otherCount: 0, counts, numbers: [], ...more };
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
  const { fieldId, label, rowNames, answeredCount, otherCount, counts, numbers } = asked;
  const { isRanking, isPromoter, isOpen } = asked;
  const share = (isCounted: (value: number) => boolean) => numbers.filter(isCounted).length / numbers.length;
  const score = 100 * (share((value) => value >= 9) - share((value) => value <= 6));
  const hasNumbers = numbers.length > 0;
  return {
    fieldId,
    label: [label, ...(rowNames.length > 0 ? [inOne(rowNames)] : [])].join(': '),
    answeredCount,
    otherCount,
    ...(hasNumbers && { average: numbers.reduce((sum, value) => sum + value, 0) / numbers.length }),
    ...(hasNumbers && isPromoter === true && { netPromoterScore: Math.round(score) }),
    options:
      isOpen === true
        ? rangesOf(numbers, locale)
        : [...counts.values()].map(({ names, count, rankSum }) => ({
            label: inOne(names),
            count,
            ...(isRanking === true && count > 0 && { averagePlace: rankSum / count }),
          })),
  };
}

/** All names that an option or a row had, the newest first. */
function inOne(names: readonly string[]): string {
  return names.join(' / ');
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
  /** By the option's value. `names` are the labels that it had, `rankSum` is the sum of its ranks. */
  counts: Map<Json, { names: string[]; count: number; rankSum: number }>;
  /** The answers of a question for numbers. */
  numbers: number[];
  isNumber?: boolean;
  /** Whether any number may be answered. */
  isOpen?: boolean;
  isPromoter?: boolean;
  isRanking?: boolean;
  /** Of a matrix, and the labels that it had. */
  row?: string;
  rowNames: string[];
};
