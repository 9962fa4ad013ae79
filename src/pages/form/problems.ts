import { inputNames } from '../../domain/answers/form-inputs.ts';
import type { Field } from '../../domain/definition/definition.ts';
import { fieldIdOf } from '../../domain/errors/violations.ts';
import { addressParts, partNames } from '../../domain/fields/address.ts';
import { MAX_OTHER } from '../../domain/fields/select.ts';
import { MAX_SIGNATURE_BYTES, MAX_SIGNATURE_LENGTH } from '../../domain/fields/signature.ts';
import type { ErrorDetail } from '../../http/errors.ts';
import type { Words } from '../../text/words/en.ts';
import { fill, type Language } from '../../text/words/language.ts';
import { labelOf } from './controls/address.ts';
import { boundsOf, sizeInWords } from './hints.ts';

/**
 * What is wrong with each field in the page's language, by field id: the first problem of each. The texts stand beside
 * the field's label, so they do not repeat it.
 *
 * `texts` are what was posted; a field without any lacks an answer. What concerns no visible field
 * is left out.
 */
export function problemsOf(
  violations: readonly ErrorDetail[],
  fields: readonly Field[],
  texts: ReadonlyMap<string, readonly string[]>,
  language: Language,
): Map<string, Problem> {
  const problems = new Map<string, Problem>();
  for (const violation of violations) {
    const field = fields.find(({ id }) => id === fieldIdOf(violation.path));
    if (field === undefined || problems.has(field.id)) continue;
    const posted = inputNames(field).flatMap((name) => texts.get(name) ?? []);
    const empty = posted.every((text) => text.trim() === '') && !violation.path.endsWith(OF_A_FILE);
    const text = empty ? missing(field, language.words) : wordsFor(field, violation, language);
    problems.set(field.id, { text, ...(!empty && partProblem(field, violation, language)) });
  }
  return problems;
}

/** What is wrong with one part of an answer of several, such as the city of an address. */
function partProblem(
  field: Field,
  { code, path }: ErrorDetail,
  { words }: Language,
): Partial<Problem> | undefined {
  const part = path.split('.')[2];
  if (field.type === 'matrix') {
    const row = field.rows?.find(({ value }) => value === part);
    return row && { text: fill(words.needRow, { row: row.label }), part: row.value };
  }
  const name = field.type === 'address' ? partNames.find((each) => each === part) : undefined;
  if (name === undefined) return undefined;
  const tooLong = code === 'too_big' && fill(words.tooLong, { max: addressParts[name].maxLength });
  return { text: tooLong || fill(words.needPart, { part: labelOf(name, words) }), part: name };
}

/** The id of the control that a problem is about. */
export function anchorOf(field: Field, { part }: Pick<Problem, 'part'>): string {
  const [, ...parts] = inputNames(field);
  const place = part === undefined ? 0 : Math.max(0, parts.indexOf(`${field.id}.${part}`));
  return `${field.id}.${field.type === 'matrix' ? place * (field.options?.length ?? 0) : place}`;
}

function missing({ type }: Field, words: Words): string {
  switch (type) {
    case 'select':
    case 'radio':
    case 'multi_select':
    case 'boolean':
    case 'rating':
    case 'scale':
    case 'matrix':
      return words.needChoice;
    case 'ranking':
      return words.needOrder;
    case 'checkbox':
      return words.needTick;
    case 'file':
      return words.needFile;
    case 'signature':
      return words.needSignature;
    case 'text':
    case 'textarea':
    case 'email':
    case 'url':
    case 'phone':
    case 'number':
    case 'date':
    case 'time':
    case 'datetime':
    case 'address':
    case 'hidden':
    case 'statement':
      return words.needAnswer;
    default:
      return type satisfies never;
  }
}

function wordsFor(field: Field, { code, path }: ErrorDetail, { words, tag }: Language): string {
  const { min = '', max = '' } = boundsOf(field, tag);
  switch (field.type) {
    case 'text':
    case 'textarea':
    case 'email':
    case 'url':
    case 'phone':
      if (code === 'too_small') return fill(words.tooShort, { min: field.minLength ?? 0 });
      if (code === 'too_big') return fill(words.tooLong, { max: field.maxLength ?? 0 });
      return textWords(field, words);
    case 'number':
      if (code === 'too_small') return fill(words.tooLow, { min });
      if (code === 'too_big') return fill(words.tooHigh, { max });
      if (code === 'not_multiple_of') return fill(words.notMultiple, { step: field.step ?? 0 });
      return words.needNumber;
    case 'date':
    case 'time':
    case 'datetime':
      if (code === 'too_small') return fill(words.tooEarly, { min });
      if (code === 'too_big') return fill(words.tooLate, { max });
      return field.type === 'time' ? words.needTime : words.needDate;
    case 'multi_select':
      if (code === 'too_small') return fill(words.tooFewChoices, { min: field.minItems ?? 0 });
      if (code === 'too_big') return fill(words.tooManyChoices, { max: field.maxItems ?? 0 });
      return words.needChoice;
    case 'select':
    case 'radio':
      return code === 'too_big' ? fill(words.tooLong, { max: MAX_OTHER }) : words.needChoice;
    case 'boolean':
    case 'rating':
    case 'scale':
    case 'matrix':
      return words.needChoice;
    case 'ranking':
      return words.needOrder;
    case 'checkbox':
      return words.needTick;
    case 'file':
      if (code !== 'too_big') return words.fileRefused;
      if (path.endsWith(OF_A_FILE)) return tooLarge(field.maxBytes ?? 0, { words, tag });
      return fill(words.tooManyFiles, { max: field.maxFiles ?? 1 });
    case 'signature':
      if (path.endsWith(OF_A_FILE))
        return code === 'too_big' ? tooLarge(MAX_SIGNATURE_BYTES, { words, tag }) : words.fileRefused;
      return code === 'too_big' ? fill(words.tooLong, { max: MAX_SIGNATURE_LENGTH }) : words.needSignature;
    case 'address':
    case 'hidden':
    case 'statement':
      return words.refused;
    default:
      return field.type satisfies never;
  }
}

function tooLarge(maxBytes: number, { words, tag }: Pick<Language, 'words' | 'tag'>): string {
  return fill(words.fileTooLarge, { size: sizeInWords(maxBytes, tag) });
}

/** The author's own message, if there is one. */
function textWords({ type, patternMessage }: Field, words: Words): string {
  if (patternMessage !== undefined) return patternMessage;
  const own = { email: words.needEmail, url: words.needUrl, phone: words.needPhone };
  return type === 'email' || type === 'url' || type === 'phone' ? own[type] : words.needPattern;
}

/** The end of a violation's path that concerns one file, not the list of them. */
const OF_A_FILE = '.file';

/** What is wrong with a field, in words, and with which part of its answer if not with all of it. */
export type Problem = { text: string; part?: string };
