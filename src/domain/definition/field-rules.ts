import { expected, isTimeOf } from '../answers/answer-time.ts';
import { answerCheck } from '../answers/answer-types.ts';
import { isObject } from '../json.ts';
import { compareTimes } from '../time.ts';
import { kindOf, pathOf, required, type Violation } from '../violations.ts';
import { type FieldType, fieldSchema, fieldTypes, type ParsedField } from './field.ts';
import { belongsTo, hasOptions, normalizeField } from './field-attributes.ts';

/**
 * What is wrong between the attributes of one field, whose own shapes are checked elsewhere.
 *
 * `input` is the field as it was sent; an attribute of the wrong shape is left out of judgement, and
 * hides no other's problem. A default is judged only where `patternFits`: it takes the pattern.
 */
export function fieldProblems(input: unknown, path: string, patternFits: boolean): Violation[] {
  const type = typeOf(input);
  if (!isObject(input) || type === undefined) return [];
  const foreign = Object.keys(input).filter((attribute) => !belongsTo(attribute, type));
  const misplaced = foreign.map((attribute) => misplacedAttribute(pathOf(path, attribute), attribute, type));
  const { field, whole } = wellShaped(input, type, foreign);
  if (field === undefined) return misplaced;
  const problems = [...misplaced, ...optionProblems(field, input, path), ...limitProblems(field, path)];
  return whole && patternFits && problems.length === 0 ? defaultProblems(field, path) : problems;
}

/** The field without its unknown, misplaced and misshapen attributes; `whole` if there are none. */
function wellShaped(input: Record<string, unknown>, type: FieldType, foreign: string[]): WellShaped {
  const { error } = fieldSchema.safeParse(input);
  const unfit = new Set<PropertyKey>(foreign);
  for (const issue of error?.issues ?? []) {
    const names = issue.code === 'unrecognized_keys' ? issue.keys : issue.path.slice(0, 1);
    for (const name of names) unfit.add(name);
  }
  const fit = Object.entries(input).filter(([name]) => !unfit.has(name));
  const { data: field } = fieldSchema.safeParse({ id: 'unnamed', type, ...Object.fromEntries(fit) });
  return { field, whole: unfit.size === 0 };
}

function typeOf(input: unknown): FieldType | undefined {
  return isObject(input) ? fieldTypes.find((type) => type === input.type) : undefined;
}

function misplacedAttribute(path: string, attribute: string, type: FieldType): Violation {
  return { path, code: 'unrecognized_keys', message: `A field of type "${type}" has no "${attribute}"` };
}

function optionProblems(field: ParsedField, input: Record<string, unknown>, path: string): Violation[] {
  if (!hasOptions(field.type)) return [];
  if (input.options === undefined) return [required(`${path}.options`)];
  const seen = new Set<string>();
  return (field.options ?? []).flatMap(({ value }, index) => {
    if (!seen.has(value)) {
      seen.add(value);
      return [];
    }
    return [custom(`${path}.options.${index}.value`, 'The values of options must be unique')];
  });
}

function limitProblems(field: ParsedField, path: string): Violation[] {
  const { minLength, maxLength, minItems, maxItems, options } = field;
  const problems = (['min', 'max'] as const).flatMap((name) => boundProblems(field, name, path));
  if (minLength !== undefined && maxLength !== undefined && minLength > maxLength) {
    problems.push(custom(`${path}.maxLength`, 'maxLength must not be below minLength'));
  }
  if (minItems !== undefined && maxItems !== undefined && minItems > maxItems) {
    problems.push(custom(`${path}.maxItems`, 'maxItems must not be below minItems'));
  }
  if (minItems !== undefined && options !== undefined && minItems > options.length) {
    problems.push(custom(`${path}.minItems`, 'minItems must not be above the number of options'));
  }
  if (problems.length === 0 && !isOrdered(field)) {
    problems.push(custom(`${path}.max`, 'max must not be below min'));
  }
  return problems;
}

/** Bounds are of the kind that the answers are: numbers, or times as text. */
function boundProblems(field: ParsedField, name: 'min' | 'max', path: string): Violation[] {
  const bound = field[name];
  if (bound === undefined) return [];
  const wanted = field.type === 'number' ? 'number' : 'string';
  if (typeof bound !== wanted) {
    const message = `Expected ${wanted}, received ${kindOf(bound)}`;
    return [{ path: `${path}.${name}`, code: 'invalid_type', message }];
  }
  const { type } = field;
  if (typeof bound !== 'string' || !isTimeType(type) || isTimeOf[type](bound)) return [];
  return [{ path: `${path}.${name}`, code: 'invalid_date', message: expected[type] }];
}

function isOrdered({ type, min, max }: ParsedField): boolean {
  if (typeof min === 'number' && typeof max === 'number') return min <= max;
  if (typeof min !== 'string' || typeof max !== 'string' || !isTimeType(type)) return true;
  return compareTimes(type, min, max) <= 0;
}

function isTimeType(type: FieldType): type is keyof typeof isTimeOf {
  return Object.hasOwn(isTimeOf, type);
}

function defaultProblems(field: ParsedField, path: string): Violation[] {
  const { defaultValue, ...normal } = normalizeField(field);
  if (defaultValue === undefined) return [];
  if (field.type === 'file') return [custom(`${path}.defaultValue`, 'A file field has no default')];
  const problems: Violation[] = [];
  answerCheck({ ...normal, required: false })(defaultValue, `${path}.defaultValue`, problems);
  return problems;
}

function custom(path: string, message: string): Violation {
  return { path, code: 'custom', message };
}

type WellShaped = { field: ParsedField | undefined; whole: boolean };
