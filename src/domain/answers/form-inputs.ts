import type { FormDefinition } from '../definition/definition.ts';
import type { Field } from '../definition/field.ts';
import type { Json } from '../json.ts';

/**
 * Reads the texts of an HTML form as answers, each by its field's type.
 *
 * Names that are no field's are dropped. A text that can't be read stays text, so that
 * `checkAnswers` names it. Of an input that came several times the last counts, as with the usual
 * pair of a hidden and a ticked input; a `multi_select` and a `file` that takes several count them
 * all. Line breaks become LF, and a datetime without offset, which is what browsers have, reads
 * as UTC. `humanOnly` leaves out hidden fields: what a human could not see, a human did not answer.
 */
export function readInputs(
  definition: FormDefinition,
  inputs: readonly FormInput[],
  options: { humanOnly?: boolean } = {},
): { [fieldId: string]: Json } {
  const byName = new Map(inputs.map(({ name, values }) => [name, values]));
  const answers: { [fieldId: string]: Json } = {};
  for (const field of definition.fields) {
    if (options.humanOnly && field.hidden) continue;
    const values = byName.get(field.id);
    if (values !== undefined && values.length > 0) answers[field.id] = readAnswer(field, values);
  }
  return answers;
}

function readAnswer(field: Field, values: readonly string[]): Json {
  const given = values.filter((value) => value !== '');
  const last = values.at(-1) ?? '';
  switch (field.type) {
    case 'number':
      return readNumber(last);
    case 'boolean':
    case 'checkbox':
      return readBoolean(last);
    case 'datetime':
      return readDatetime(last);
    case 'multi_select':
      return given;
    case 'file':
      return readUploads(field, given);
    case 'text':
    case 'textarea':
    case 'email':
    case 'url':
    case 'phone':
    case 'date':
    case 'time':
    case 'select':
    case 'radio':
    case 'hidden':
      return last.replace(/\r\n?/g, '\n');
    default:
      return field.type satisfies never;
  }
}

function readNumber(text: string): Json {
  const number = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?$/.test(text.trim())
    ? Number(text)
    : Number.NaN;
  return Number.isFinite(number) ? number : text.trim();
}

function readBoolean(text: string): Json {
  const word = text.trim().toLowerCase();
  if (['on', 'true', '1', 'yes'].includes(word)) return true;
  if (['off', 'false', '0', 'no'].includes(word)) return false;
  return text;
}

function readDatetime(text: string): Json {
  return /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?$/.test(text) ? `${text}Z` : text;
}

function readUploads({ maxFiles }: Field, ids: string[]): Json {
  const uploads = ids.map((id) => ({ upload_id: id }));
  return maxFiles === 1 ? (uploads.at(-1) ?? null) : uploads;
}

/** An input of a form and its values, in the order they were sent. */
export type FormInput = { name: string; values: readonly string[] };
