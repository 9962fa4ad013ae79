import { isEmpty } from '../conditions/condition.ts';
import { custom, pathOf, type Violation } from '../errors/violations.ts';
import {
  type Field,
  type FieldType,
  fieldSchema,
  fieldTypes,
  type ParsedField,
  typeAttributes,
} from '../fields/field.ts';
import type { FormFacts } from '../fields/field-type.ts';
import { fieldRules } from '../fields/index.ts';
import { isObject } from '../json/json.ts';
import { startMatching } from '../patterns/pattern.ts';
import { contradictionsIn } from './contradictions.ts';

/**
 * Returns what is wrong between the attributes of one field; the schema checks each by itself.
 *
 * `input` is the field as it was sent. An attribute of the wrong shape is ignored, so that it hides no problem of
 * another. What needs the pattern is checked only if `patternFits`.
 */
export function fieldProblems(
  input: unknown,
  path: string,
  { patternFits, isInUse, ...form }: FormFacts & { patternFits: boolean; isInUse?: boolean },
): Violation[] {
  const read = wellShaped(input);
  if (read === undefined) return [];
  const { sent, type, field, foreign, unfit } = read;
  const misplaced = foreign.map((attribute) => misplacedAttribute(pathOf(path, attribute), attribute, type));
  if (field === undefined) return misplaced;
  const problems = [
    ...misplaced,
    ...(fieldRules[type].problems?.(field, sent, path) ?? []),
    ...answererProblems(field, path),
  ];
  if (unfit.size > 0 || !patternFits || problems.length > 0) return problems;
  const contradictions = isInUse === true ? [] : contradictionsIn(field, path);
  return contradictions.length > 0 ? contradictions : defaultProblems(field, path, form);
}

/** A field as it was sent, with every default filled in; undefined if what its answers depend on is wrong. */
export function answeredField(input: unknown, form: FormFacts): Field | undefined {
  const read = wellShaped(input);
  if (read?.field === undefined) return undefined;
  const { attributes, problems } = fieldRules[read.type];
  if ([...read.unfit].some((name) => Object.hasOwn(attributes, name))) return undefined;
  return (problems?.(read.field, read.sent, '') ?? []).length > 0
    ? undefined
    : normalizeField(read.field, form);
}

/** Fills in the defaults that depend on the field: its label by the id, its limits by the type. */
export function normalizeField(parsed: ParsedField, form: FormFacts): Field {
  const { id, type, label = humanLabel(parsed.id), description, placeholder, agentHint, ...others } = parsed;
  const { defaultValue, ...rest } = others;
  const field: Field = {
    id,
    type,
    label,
    ...(description && { description }),
    ...(placeholder && { placeholder }),
    ...(agentHint && { agentHint }),
    ...rest,
    ...(defaultValue !== undefined && !isEmpty(defaultValue) && { defaultValue }),
  };
  return { ...field, ...fieldRules[type].defaults?.(field, form) };
}

/** Whether an attribute belongs to fields of other types only. */
function isForeign(attribute: string, type: FieldType): boolean {
  return Object.hasOwn(typeAttributes, attribute) && !Object.hasOwn(fieldRules[type].attributes, attribute);
}

/** The field without its unknown, misplaced and misshapen attributes, and the names of these; undefined without a type. */
function wellShaped(input: unknown) {
  const type = typeOf(input);
  if (!isObject(input) || type === undefined) return undefined;
  const foreign = Object.keys(input).filter((attribute) => isForeign(attribute, type));
  // Nobody reads the messages, which look for names that may have been meant.
  const { error } = fieldSchema.safeParse(input, { error: () => '' });
  const unfit = new Set<PropertyKey>(foreign);
  for (const issue of error?.issues ?? []) {
    const names = issue.code === 'unrecognized_keys' ? issue.keys : issue.path.slice(0, 1);
    for (const name of names) unfit.add(name);
  }
  const fit = Object.entries(input).filter(([name]) => !unfit.has(name));
  const { data: field } = fieldSchema.safeParse({ id: 'unnamed', type, ...Object.fromEntries(fit) });
  return { sent: input, type, field, foreign, unfit };
}

function answererProblems({ type, hidden, answeredBy }: ParsedField, path: string): Violation[] {
  if (answeredBy !== 'human' || (!hidden && type !== 'hidden')) return [];
  return [custom(`${path}.answeredBy`, 'A hidden field is shown to nobody, so that no person can answer it')];
}

function typeOf(input: unknown): FieldType | undefined {
  return isObject(input) ? fieldTypes.find((type) => type === input.type) : undefined;
}

function misplacedAttribute(path: string, attribute: string, type: FieldType): Violation {
  return { path, code: 'unrecognized_keys', message: `A field of type "${type}" has no "${attribute}"` };
}

function defaultProblems(parsed: ParsedField, path: string, form: FormFacts): Violation[] {
  const { defaultValue, ...field } = normalizeField(parsed, form);
  if (defaultValue === undefined) return [];
  const check = fieldRules[field.type].check({ ...field, required: false });
  return [...check(defaultValue, `${path}.defaultValue`, startMatching())];
}

/** `first_name`, `first-name` and `firstName` read "First name". */
function humanLabel(id: string): string {
  const words = id
    .replace(/([a-z0-9])([A-Z])/g, (_, end: string, start: string) => `${end} ${start.toLowerCase()}`)
    .replace(/[_-]+/g, ' ')
    .trim();
  return words.charAt(0).toUpperCase() + words.slice(1);
}
