import type { AnswerFilter as AskedFilter } from '../../../gen/headlessforms/v1/submissions_pb.js';
import type { FormDefinition } from '../definition/definition.ts';
import { custom, type Violation } from '../errors/violations.ts';
import { oneOf } from '../errors/zod-messages.ts';
import type { Field, FieldType } from '../fields/field.ts';
import { fieldRules } from '../fields/index.ts';
import { plainTextProblems } from '../fields/text.ts';
import type { Json } from '../json/json.ts';
import { instants, MAX_FILTER_LENGTH } from '../limits/limits.ts';
import { normalForms } from '../text/typed-signs.ts';
import { foldAnswer } from './answers.ts';

/**
 * The conditions that a list sets on answers, by the form's current version, or all that is wrong with them. The texts
 * that values come as are read as those of an HTML form are.
 */
export function readFilters(
  { fields }: Pick<FormDefinition, 'fields'>,
  asked: readonly Pick<AskedFilter, 'fieldId' | 'condition'>[],
): { filters: AnswerFilter[]; violations: Violation[] } {
  if (asked.length > MAX_FILTERS) {
    const message = `Expected at most ${MAX_FILTERS} conditions`;
    return { filters: [], violations: [{ path: 'filters', code: 'too_big', message }] };
  }
  const violations: Violation[] = [];
  const filters = asked.flatMap(({ fieldId, condition }, index): AnswerFilter[] => {
    const path = `filters[${index}]`;
    const field = fields.find(({ id }) => id === fieldId);
    if (field === undefined) {
      violations.push(custom(`${path}.field_id`, 'The form has no such field'));
      return [];
    }
    const kind = kindOf(field.type);
    const { ops } = kinds[kind];
    const op = ops.find((each) => each === condition.case);
    if (op === undefined) {
      violations.push(
        ops.length === 0
          ? custom(`${path}.field_id`, `Lists can't be filtered by a field of the type ${field.type}`)
          : {
              path: `${path}.${condition.case ?? 'condition'}`,
              code: 'invalid_enum_value',
              message: oneOf(ops, condition.case),
            },
      );
      return [];
    }
    const given = condition.case === 'in' ? condition.value.values : [String(condition.value)];
    const problems = problemsOf(field, kind, given, `${path}.${op}`);
    violations.push(...problems);
    if (problems.length > 0) return [];
    const answers = given.map((text) => answerFrom(field, kind, text));
    const values = answers.map(kind === 'instant' ? instantIn : textOf).flatMap(normalForms);
    return [{ fieldId, kind, op, values }];
  });
  return { filters, violations };
}

/** A value as the answer that it stands for. */
function answerFrom(field: Field, kind: FilterKind, text: string): Json {
  if (!kinds[kind].checked) return foldAnswer(field, text);
  return fieldRules[field.type].readInput([text], field, () => []);
}

function problemsOf(field: Field, kind: FilterKind, given: readonly string[], path: string): Violation[] {
  if (given.length === 0 || given.length > MAX_VALUES) {
    return [custom(path, `Expected 1 to ${MAX_VALUES} values`)];
  }
  const { min: _, max: __, step: ___, ...unbounded } = field;
  return given.flatMap((text): readonly Violation[] => {
    const unfit = plainTextProblems(text, path, MAX_FILTER_LENGTH);
    if (unfit.length > 0) return unfit;
    const value = answerFrom(field, kind, text);
    if (value === '') return [custom(path, 'Required')];
    return kinds[kind].checked ? fieldRules[field.type].check(unbounded)(value, path, () => 'matches') : [];
  });
}

/** Numbers and truths as PostgreSQL reads them. */
const textOf = (value: Json) => (typeof value === 'string' ? value : JSON.stringify(value));

/** In UTC, within the years that have four digits. */
function instantIn(value: Json): string {
  return new Date(
    Math.min(Math.max(Date.parse(textOf(value)), instants.firstMs), instants.lastMs),
  ).toISOString();
}

const MAX_FILTERS = 3;
const MAX_VALUES = 20;

/**
 * What the answers to fields of some types can be asked for, and the type by which PostgreSQL compares them. Where
 * the value has to be an answer, but for the bounds of its field, it is `checked`: an option may be one of an earlier
 * version.
 */
const kinds = {
  text: kind(['text', 'textarea', 'email', 'url', 'phone'], ['eq', 'in', 'contains'], 'text'),
  choice: kind(['select', 'radio', 'hidden'], ['eq', 'in'], 'text'),
  choices: kind(['multi_select'], ['contains'], 'text'),
  number: kind(['number', 'rating', 'scale'], ['eq', 'in', 'gte', 'lte'], 'numeric', 'checked'),
  boolean: kind(['boolean', 'checkbox'], ['eq'], 'text', 'checked'),
  day: kind(['date'], ['eq', 'gte', 'lte'], 'text', 'checked'),
  time: kind(['time'], ['eq', 'gte', 'lte'], 'text', 'checked'),
  instant: kind(['datetime'], ['eq', 'gte', 'lte'], 'timestamptz', 'checked'),
  none: kind(['file', 'ranking', 'matrix', 'address', 'signature', 'statement'], [], 'text'),
};

function kind<Type extends FieldType>(
  types: Type[],
  ops: FilterOp[],
  sql: 'text' | 'numeric' | 'timestamptz',
  checked?: 'checked',
) {
  return { types, ops, sql, checked: checked !== undefined };
}

/** Takes what is listed above: a type of field that is not there does not compile. */
function kindOf(type: (typeof kinds)[FilterKind]['types'][number]): FilterKind {
  const found = Object.entries(kinds).find(([, { types }]) => types.some((each) => each === type));
  if (found === undefined) throw new TypeError(`No kind of filters for ${type}`);
  return found[0] as FilterKind;
}

/** The type that PostgreSQL compares values of a kind as. */
export const sqlTypeOf = (of: FilterKind) => kinds[of].sql;

/**
 * A condition on the answers to a field. The values are decimal texts of numbers, `true` or `false`, or as answers
 * are: in each normal form of Unicode in which they may be.
 */
export type AnswerFilter = { fieldId: string; kind: FilterKind; op: FilterOp; values: readonly string[] };

export type FilterKind = keyof typeof kinds;

export type FilterOp = 'eq' | 'in' | 'gte' | 'lte' | 'contains';
