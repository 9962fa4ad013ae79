import type { Field } from '../../domain/definition/definition.ts';
import type { ErrorDetail } from '../../http/errors.ts';
import type { Words } from '../../text/words/en.ts';
import { fill, type Language } from '../../text/words/language.ts';
import { boundsOf, sizeInWords } from './hints.ts';

/**
 * What is wrong with each field in the page's language, by field id: the first problem of each.
 *
 * `texts` are what was posted; a field without any lacks an answer. What concerns no visible field
 * is left out.
 */
export function problemsOf(
  violations: readonly ErrorDetail[],
  fields: readonly Field[],
  texts: ReadonlyMap<string, readonly string[]>,
  language: Language,
): Map<string, string> {
  const problems = new Map<string, string>();
  for (const violation of violations) {
    const field = fields.find(({ id }) => id === fieldIdOf(violation.path));
    if (field === undefined || problems.has(field.id)) continue;
    const given = (texts.get(field.id) ?? []).some((text) => text.trim() !== '');
    const empty = !given && !violation.path.endsWith(OF_A_FILE);
    problems.set(field.id, empty ? missing(field, language.words) : wordsFor(field, violation, language));
  }
  return problems;
}

/** `answers.email` and `answers.files.0` → the field's id. */
export function fieldIdOf(path: string): string {
  return path.split('.')[1] ?? '';
}

function missing(field: Field, words: Words): string {
  const { label } = field;
  switch (field.type) {
    case 'select':
    case 'radio':
    case 'multi_select':
    case 'boolean':
      return fill(words.needChoice, { label });
    case 'checkbox':
      return fill(words.needTick, { label });
    case 'file':
      return fill(words.needFile, { label });
    case 'text':
    case 'textarea':
    case 'email':
    case 'url':
    case 'phone':
    case 'number':
    case 'date':
    case 'time':
    case 'datetime':
    case 'hidden':
      return fill(words.needAnswer, { label });
    default:
      return field.type satisfies never;
  }
}

function wordsFor(field: Field, { code, path }: ErrorDetail, { words, tag }: Language): string {
  const { label } = field;
  const { min = '', max = '' } = boundsOf(field, tag);
  const say = (text: string, values: Record<string, string | number> = {}) =>
    fill(text, { label, ...values });
  switch (field.type) {
    case 'text':
    case 'textarea':
    case 'email':
    case 'url':
    case 'phone':
      if (code === 'too_small') return say(words.tooShort, { min: field.minLength ?? 0 });
      if (code === 'too_big') return say(words.tooLong, { max: field.maxLength ?? 0 });
      return textWords(field, words);
    case 'number':
      if (code === 'too_small') return say(words.tooLow, { min });
      if (code === 'too_big') return say(words.tooHigh, { max });
      if (code === 'not_multiple_of') return say(words.notMultiple, { step: field.step ?? 0 });
      return say(words.needNumber);
    case 'date':
    case 'time':
    case 'datetime':
      if (code === 'too_small') return say(words.tooEarly, { min });
      if (code === 'too_big') return say(words.tooLate, { max });
      return say(field.type === 'time' ? words.needTime : words.needDate);
    case 'multi_select':
      if (code === 'too_small') return say(words.tooFewChoices, { min: field.minItems ?? 0 });
      if (code === 'too_big') return say(words.tooManyChoices, { max: field.maxItems ?? 0 });
      return say(words.needChoice);
    case 'select':
    case 'radio':
    case 'boolean':
      return say(words.needChoice);
    case 'checkbox':
      return say(words.needTick);
    case 'file':
      if (code !== 'too_big') return say(words.fileRefused);
      if (path.endsWith(OF_A_FILE))
        return say(words.fileTooLarge, { size: sizeInWords(field.maxBytes ?? 0) });
      return say(words.tooManyFiles, { max: field.maxFiles ?? 1 });
    case 'hidden':
      return say(words.refused);
    default:
      return field.type satisfies never;
  }
}

/** The author's own message, if there is one. */
function textWords(field: Field, words: Words): string {
  const { label, type } = field;
  if (field.patternMessage !== undefined) return field.patternMessage;
  const own = { email: words.needEmail, url: words.needUrl, phone: words.needPhone };
  return fill(type === 'email' || type === 'url' || type === 'phone' ? own[type] : words.needPattern, {
    label,
  });
}

/** The end of a violation's path that concerns one file, not the list of them. */
const OF_A_FILE = '.file';
