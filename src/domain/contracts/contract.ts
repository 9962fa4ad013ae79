import type { FormDefinition } from '../definition/definition.ts';
import { type Field, takesAnswer } from '../fields/field.ts';
import type { AnswerType } from '../fields/field-type.ts';
import { fieldRules } from '../fields/index.ts';
import { ownValue } from '../json/json.ts';
import reserved from './reserved-words.json' with { type: 'json' };

/** The contract of a form's first version. `owner` is the form's key or else its id. */
export function firstContract(owner: string, definition: Asked): Contract {
  const message = `${pascalCase(definition.name) || 'Form'}Answers`;
  return extended({ package: packageOf(owner), message, nextNumber: 1, fields: {} }, definition, () => false);
}

/**
 * The contract of a version that replaces another. A field keeps its number and name as long as it is there with the
 * same type. Others get numbers from `nextNumber` on, below which all were given, so none is ever used again.
 */
export function nextContract(
  { contract, definition: before }: { contract: Contract; definition: Asked },
  definition: Asked,
  nextNumber = contract.nextNumber,
): Contract {
  const types = new Map(before.fields.map((field) => [field.id, answerTypeOf(field)]));
  return extended(
    { ...contract, nextNumber },
    definition,
    (field) => types.get(field.id) === answerTypeOf(field),
  );
}

/** What an answer of a field is in proto; undefined if the field takes none. */
export function answerTypeOf(field: Field): AnswerType | undefined {
  return fieldRules[field.type].answerType?.(field);
}

/** Numbers that were given and that no field of this version has, as ranges with both ends. */
export function reservedRanges({ nextNumber, fields }: Contract): [first: number, last: number][] {
  const used = new Set(Object.values(fields).map(({ number }) => number));
  const ranges: [number, number][] = [];
  for (let number = 1; number < nextNumber; number += 1) {
    if (used.has(number) || skipped(number) !== number) continue;
    const range = ranges.at(-1);
    if (range?.[1] === number - 1) range[1] = number;
    else ranges.push([number, number]);
  }
  return ranges;
}

function extended(base: Contract, definition: Asked, isSame: (field: Field) => boolean): Contract {
  const asked = definition.fields.filter(takesAnswer);
  const slots = new Map<string, { number: number; name?: string }>();
  for (const field of asked) {
    const slot = isSame(field) ? ownValue(base.fields, field.id) : undefined;
    // A client's JSON could mean either of two fields if the name of one were the id of the other.
    const isTaken = asked.some(({ id }) => id !== field.id && id === slot?.name);
    if (slot !== undefined) slots.set(field.id, isTaken ? { number: slot.number } : slot);
  }
  let { nextNumber } = base;
  for (const { id } of asked) {
    if (slots.has(id)) continue;
    nextNumber = skipped(nextNumber);
    slots.set(id, { number: nextNumber });
    nextNumber += 1;
  }
  const names = new Set([...slots.values()].flatMap(({ name }) => name ?? []));
  const fields = asked.map(({ id }): [string, Slot] => {
    const { number = 0, name } = slots.get(id) ?? {};
    const others = [...names, ...asked.flatMap((other) => (other.id === id ? [] : other.id))];
    const given = name ?? freeName(id, number, others);
    names.add(given);
    return [id, { number, name: given }];
  });
  return { ...base, nextNumber, fields: Object.fromEntries(fields) };
}

/** Protobuf keeps numbers from 19,000 to 19,999 for itself. */
function skipped(number: number): number {
  return number >= 19_000 && number < 20_000 ? 20_000 : number;
}

/**
 * The id in the way proto writes names, with the number of its field where generated code could confuse it with
 * another.
 */
function freeName(id: string, number: number, others: readonly string[]): string {
  let name = snakeCase(id);
  while (others.some((other) => areAlike(name, other)) || reservedNames.has(name)) name += `_${number}`;
  return name;
}

/** Whether two names are the same but for case and `_`, or one names an accessor of the other's in generated code. */
function areAlike(one: string, other: string): boolean {
  const [left, right] = [snakeCase(one), snakeCase(other)];
  return folded(left) === folded(right) || isAccessor(left, right) || isAccessor(right, left);
}

function isAccessor(name: string, of: string): boolean {
  const [, begun, ended] =
    /^(?:(?:has|get|set|clear|add|mutable|release|set_allocated)_(.+)|(.+)_(?:size|bytes|count|list|map|value|builder|or_builder))$/.exec(
      name,
    ) ?? [];
  return begun === of || ended === of;
}

/**
 * Names that generated code can't have as they are: words of Python, macros of C, and what every message has in C++,
 * Java, Go, JavaScript or Ruby. Some generators rename such a field, and then what reads JSON by its messages looks for
 * the former name. Words of the other languages stand in no accessor alone, or are escaped by all generators.
 */
const reservedNames = new Set([...reserved.python, ...reserved.macros, ...reserved.members]);

function folded(name: string): string {
  return name.replaceAll('_', '').toLowerCase();
}

/** `firstName`, `first-name` and `First_Name` are `first_name`. */
export function snakeCase(id: string): string {
  const words = id.replace(/([a-z0-9])(?=[A-Z])|([A-Z])(?=[A-Z][a-z])/g, '$&_').split(/[_-]+/);
  return words
    .filter((word) => word !== '')
    .join('_')
    .toLowerCase();
}

/** `Contact us, please!` is `ContactUsPlease`. Generated code has ASCII letters alone. */
function pascalCase(text: string): string {
  const words =
    text
      .normalize('NFKD')
      .replace(/[\p{M}'’]/gu, '')
      .match(/[A-Za-z0-9]+/g) ?? [];
  const name = words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('');
  return (/^[0-9]/.test(name) ? `Form${name}` : name).slice(0, 64);
}

/** One file a form and one package a file. Generators do not rename packages that are words of a language. */
function packageOf(owner: string): string {
  const name = owner.replace(/[^a-z0-9_]+/g, '_').replace(/^(?=[0-9])/, 'form_');
  const isWord = reservedNames.has(name) || reserved.otherLanguages.includes(name);
  return `headlessforms.generated.${isWord ? `${name}_form` : name}`;
}

/**
 * What generated code of clients depends on, of one version of a form: it stands beside the definition, outside of its
 * canonical JSON and checksum, and never changes.
 */
export type Contract = {
  /** The proto package, which all versions of a form share with the first. */
  package: string;
  /** The name of the message, likewise. */
  message: string;
  /** All numbers below were given to a field of this or an earlier version. */
  nextNumber: number;
  /** By the ids of fields. */
  fields: { [fieldId: string]: Slot };
};

type Slot = { number: number; name: string };

type Asked = Pick<FormDefinition, 'name' | 'fields'>;
