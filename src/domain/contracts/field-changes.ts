import { isDeepStrictEqual } from 'node:util';
import type { Field, FieldType } from '../fields/field.ts';
import { fieldRules } from '../fields/index.ts';
import { isMultiple } from '../fields/number.ts';
import { inNfc } from '../text/typed-signs.ts';
import { answerTypeOf } from './contract.ts';

/**
 * Who relies on a definition: who sends answers, receivers of events, readers of exports, who prefills, open
 * sessions, readers of charts.
 */
export const consumers = ['clients', 'webhooks', 'csv', 'prefill', 'sessions', 'insights'] as const;

/** Charts keep fields that are gone. */
const allButCharts = ['clients', 'webhooks', 'csv', 'prefill', 'sessions'] as const;

type Consumer = (typeof consumers)[number];

/** What was valid stays valid, and answers read as before. */
const harmless = { breaks: [], backward: true, forward: true } as const;
/** What was valid can be refused. */
const refusesFormerAnswers = { breaks: ['clients', 'prefill'], backward: false, forward: true } as const;
/** What each kind of change breaks. The reason for each is in docs/contracts.md. */
export const changeKinds = {
  field_added: harmless,
  required_field_added: refusesFormerAnswers,
  field_removed: { breaks: allButCharts, backward: false, forward: true },
  required_field_removed: { breaks: allButCharts, backward: false, forward: false },
  field_retyped: { breaks: consumers, backward: false, forward: false },
  meaning_changed: { breaks: ['clients', 'csv', 'insights'], backward: false, forward: false },
  made_required: refusesFormerAnswers,
  made_optional: { breaks: ['webhooks'], backward: true, forward: false },
  limits_narrowed: refusesFormerAnswers,
  limits_widened: harmless,
  option_added: harmless,
  option_removed: refusesFormerAnswers,
  option_unlisted: harmless,
  label_replaced: { breaks: ['insights'], backward: true, forward: true },
  answerer_narrowed: refusesFormerAnswers,
  answerer_widened: harmless,
  condition_changed: { breaks: ['webhooks'], backward: true, forward: true },
  visibility_changed: harmless,
  default_changed: harmless,
  page_moved: harmless,
  text_changed: harmless,
  setting_changed: harmless,
  access_narrowed: { breaks: ['clients', 'sessions'], backward: true, forward: true },
  delivery_changed: { breaks: ['webhooks'], backward: true, forward: true },
} as const satisfies Record<string, Verdict>;

/** What changed between two versions of the field at `path`, which both ask for an answer. */
export function compareField(former: Field, next: Field, path: string): FoundChange[] {
  if (!isDeepStrictEqual(answerTypeOf(former), answerTypeOf(next))) return [{ path, kind: 'field_retyped' }];
  const kinds = new Set<ChangeKind>();
  if (former.type !== next.type) kinds.add(takesAll(next, former) ? 'limits_widened' : 'limits_narrowed');
  if (isRefusedWithout(next) && !isRefusedWithout(former)) kinds.add('made_required');
  if (isAlwaysAnswered(former) && !isAlwaysAnswered(next)) kinds.add('made_optional');
  const compared = isComparable(former, next) ? { ...common, ...byType } : common;
  for (const [name, compare] of Object.entries(compared)) {
    if (isDeepStrictEqual(Reflect.get(former, name), Reflect.get(next, name))) continue;
    for (const kind of [compare(former, next)].flat()) kinds.add(kind);
  }
  if (!haveOneMeaning(former, next)) {
    kinds.add('meaning_changed');
    // Where the same value means something else, more room for values is no mere widening.
    kinds.delete('limits_widened');
  }
  return [...kinds].map((kind) => ({ path, kind }));
}

/** Whether answers are refused that leave the field out, at least where its condition holds. */
export function isRefusedWithout({ required, defaultValue }: Field): boolean {
  return required && defaultValue === undefined;
}

/** Whether every submission has an answer to the field. */
export function isAlwaysAnswered({ required, defaultValue, visibleWhen }: Field): boolean {
  return (required || defaultValue !== undefined) && visibleWhen === undefined;
}

/** Whether the answers to two versions of a field say the same by the same values, so that they are counted together. */
export function haveOneMeaning(field: Field, other: Field): boolean {
  if (!isDeepStrictEqual(answerTypeOf(field), answerTypeOf(other))) return false;
  if (!isPoints(field) || !isPoints(other)) return isComparable(field, other);
  const [labels, others] = [field, other].map(({ minLabel = '', maxLabel = '' }) =>
    [minLabel, maxLabel].map(spelled),
  );
  const isSwapped = labels?.[0] !== labels?.[1] && isDeepStrictEqual(labels, others?.toReversed());
  return field.type === other.type && !isSwapped && isDeepStrictEqual(boundsOf(field), boundsOf(other));
}

/** The ends of a rating or a scale. */
function boundsOf(field: Field) {
  return [boundOf(field, field.min), field.max];
}

function isPoints({ type }: Field): boolean {
  return type === 'rating' || type === 'scale';
}

/** Whether one label does not only spell another in a different way: neither contains the other, or a number differs. */
export function isReplaced(former: string, next: string): boolean {
  const [before, after] = [spelled(former), spelled(next)];
  const numbers = (label: string) => label.match(/\d+/g);
  const isContained = before.includes(after) || after.includes(before);
  return !isContained || !isDeepStrictEqual(numbers(before), numbers(after));
}

function spelled(label: string): string {
  return inNfc(label).toLowerCase().replace(/\s+/g, ' ').trim();
}

/** Whether the attributes of two types mean the same. */
function isComparable({ type: former }: Field, { type: next }: Field): boolean {
  return former === next || alike.some((types) => types.includes(former) && types.includes(next));
}

const alike: readonly (readonly FieldType[])[] = [
  ['text', 'textarea'],
  ['select', 'radio'],
  ['boolean', 'checkbox'],
  ['rating', 'scale'],
];

/** Whether a field of another type, with answers of the same shape, takes all answers of the former one. */
function takesAll(next: Field, former: Field): boolean {
  if (next.type === 'checkbox') return !next.required;
  if (isComparable(former, next)) return true;
  const isFreeText = next.type === 'text' || next.type === 'textarea';
  const { minLength = 0, maxLength = 0, pattern } = next;
  return (
    isFreeText && pattern === undefined && minLength <= 1 && maxLength >= (former.maxLength ?? MAX_SHORT_TEXT)
  );
}

/** No date, time or choice is longer: the value of an option has at most 200 characters. */
const MAX_SHORT_TEXT = 200;

/** How the attributes of every field compare, where they differ. `required` and conditions are judged together. */
const common: Comparisons<CommonAttribute> = {
  label: () => 'text_changed',
  description: () => 'text_changed',
  placeholder: () => 'text_changed',
  agentHint: () => 'text_changed',
  // A box that must be ticked takes no other answer, whatever its default.
  required: (_former, { type, required }) => (type === 'checkbox' && required ? 'made_required' : []),
  // What people must answer and can't see they can't send.
  hidden: (_former, next) =>
    next.hidden && isRefusedWithout(next)
      ? ['visibility_changed', 'answerer_narrowed']
      : 'visibility_changed',
  answeredBy: (_former, { answeredBy }) =>
    answeredBy === 'anyone' ? 'answerer_widened' : 'answerer_narrowed',
  page: () => 'page_moved',
  defaultValue: () => 'default_changed',
  // People of whom the field was not asked may now be refused without an answer to it.
  visibleWhen: (former, next) =>
    former.visibleWhen !== undefined && isRefusedWithout(next)
      ? ['condition_changed', 'made_required']
      : 'condition_changed',
};

/** How the attributes compare that some types have. */
const byType: Comparisons<Exclude<keyof Field, CommonAttribute | 'id' | 'type'>> = {
  patternMessage: () => 'text_changed',
  personal: () => 'text_changed',
  minLabel: () => 'text_changed',
  maxLabel: () => 'text_changed',
  icon: () => 'text_changed',
  minLength: atLeast(({ minLength = 0 }) => minLength),
  maxLength: atMost(({ maxLength }) => maxLength),
  minItems: atLeast(({ minItems = 0 }) => minItems),
  maxItems: atMost(({ maxItems }) => maxItems),
  min: atLeast((field) => boundOf(field, field.min)),
  max: atMost((field) => boundOf(field, field.max)),
  maxBytes: atMost(({ maxBytes }) => maxBytes),
  maxFiles: atMost(({ maxFiles }) => maxFiles),
  step: ({ step: former }, { step: next }) => {
    const isWider = next === undefined || (former !== undefined && isMultiple(former, next));
    return isWider ? 'limits_widened' : 'limits_narrowed';
  },
  pattern: (_former, { pattern }) => (pattern === undefined ? 'limits_widened' : 'limits_narrowed'),
  accept: ({ accept: former }, { accept: next }) =>
    next === undefined || former?.every((type) => next.includes(type)) === true
      ? 'limits_widened'
      : 'limits_narrowed',
  allowOther: (_former, { allowOther }) => (allowOther === true ? 'limits_widened' : 'limits_narrowed'),
  multiple: () => 'field_retyped',
  options: compareOptions,
  rows: compareRows,
};

/** Compares the least that a field takes; undefined: there is none. */
function atLeast(boundary: Boundary): Comparison {
  return (former, next) => compareBounds(boundary(next), boundary(former), (left, right) => left <= right);
}

/** Compares the most that a field takes; undefined: there is none. */
function atMost(boundary: Boundary): Comparison {
  return (former, next) => compareBounds(boundary(next), boundary(former), (left, right) => left >= right);
}

function compareBounds(
  next: Bound | undefined,
  former: Bound | undefined,
  isWider: (next: Bound, former: Bound) => boolean,
): ChangeKind {
  const widens = next === undefined || (former !== undefined && isWider(next, former));
  return widens ? 'limits_widened' : 'limits_narrowed';
}

/** A bound in an order: datetimes by the instant, dates and times of day as their texts. */
function boundOf({ type }: Field, bound: Field['min']): Bound | undefined {
  if (type === 'rating') return bound ?? 1;
  return type === 'datetime' && typeof bound === 'string' ? Date.parse(bound) : bound;
}

function compareOptions(former: Field, next: Field): ChangeKind[] {
  const { isAdded, isRemoved, kinds } = compareChoices(former.options, next.options);
  // Of several choices, only one may be a text beside the options.
  const isStillTaken = next.allowOther === true && next.type !== 'multi_select';
  if (isRemoved) kinds.push(isStillTaken ? 'option_unlisted' : 'option_removed');
  if (isAdded) kinds.push('option_added');
  if (isAdded && fieldRules[next.type].ordersOptions === true) kinds.push('limits_narrowed');
  return kinds;
}

function compareRows(former: Field, next: Field): ChangeKind[] {
  const { isAdded, isRemoved, kinds } = compareChoices(former.rows, next.rows);
  if (isRemoved) kinds.push('option_removed');
  if (isAdded) kinds.push('option_added');
  // A required matrix wants an answer for every row.
  if (isAdded && next.required) kinds.push('made_required');
  return kinds;
}

/** `kinds` are what became of the labels of those that are kept. */
function compareChoices(former: Field['options'] = [], next: Field['options'] = []) {
  const [before, after] = [former, next].map(
    (options) => new Map(options.map((one) => [one.value, one.label])),
  );
  const kept = next.flatMap(({ value, label }) => {
    const formerly = before?.get(value);
    return formerly === undefined ? [] : [isReplaced(formerly, label)];
  });
  const isRemoved = former.some(({ value }) => after?.has(value) !== true);
  const isAdded = kept.length < next.length;
  const kinds: ChangeKind[] = [];
  if (kept.includes(true)) kinds.push('label_replaced');
  else if (!isRemoved && !isAdded) kinds.push('text_changed');
  return { isRemoved, isAdded, kinds };
}

type Bound = string | number;
type Boundary = (field: Field) => Bound | undefined;
type Comparison = (former: Field, next: Field) => ChangeKind | readonly ChangeKind[];
type Comparisons<Name extends keyof Field> = Record<Name, Comparison>;
type CommonAttribute =
  | 'label'
  | 'description'
  | 'placeholder'
  | 'agentHint'
  | 'required'
  | 'hidden'
  | 'answeredBy'
  | 'page'
  | 'defaultValue'
  | 'visibleWhen';

export type ChangeKind = keyof typeof changeKinds;

export type Verdict = {
  breaks: readonly Consumer[];
  /** Whether every answer that was valid stays valid. */
  backward: boolean;
  /** Whether readers of the former version can read the new answers. */
  forward: boolean;
};

/** A place of a definition and what became of it. */
export type FoundChange = { path: string; kind: ChangeKind };
