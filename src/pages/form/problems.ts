import { inputNames } from '../../domain/answers/form-inputs.ts';
import type { Field } from '../../domain/definition/definition.ts';
import type { Violation } from '../../domain/errors/violations.ts';
import { fieldIdOf } from '../../domain/errors/violations.ts';
import type { Language } from '../../text/words.ts';
import { fileRefusalWords, missingWords, partWords, refusalWords } from './field-words.ts';

/**
 * What is wrong with each field in the page's language, by field id: the first problem of each. The texts stand beside
 * the field's label, so they do not repeat it.
 *
 * `texts` are what was posted; a field without any lacks an answer. What concerns no visible field
 * is left out.
 */
export function problemsOf(
  violations: readonly Violation[],
  fields: readonly Field[],
  texts: ReadonlyMap<string, readonly string[]>,
  language: Language,
): Map<string, Problem> {
  const problems = new Map<string, Problem>();
  for (const violation of violations) {
    const field = fields.find(({ id }) => id === fieldIdOf(violation.path));
    if (field === undefined || problems.has(field.id)) continue;
    const posted = inputNames(field).flatMap((name) => texts.get(name) ?? []);
    const isEmpty = posted.every((text) => text.trim() === '');
    problems.set(field.id, problemOf(field, violation, { isEmpty, language }));
  }
  return problems;
}

function problemOf(
  field: Field,
  { path, code }: Violation,
  { isEmpty, language }: { isEmpty: boolean; language: Language },
): Problem {
  if (path.endsWith(OF_A_FILE)) return { text: fileRefusalWords(field, code, language) };
  if (isEmpty) return { text: missingWords(field, language) };
  const part = path.split('.')[2] ?? '';
  const text = partWords(field, part, code, language);
  return text === undefined ? { text: refusalWords(field, code, language) } : { text, part };
}

/** The end of a violation's path that concerns one file, not the list of them. */
const OF_A_FILE = '.file';

/** What is wrong with a field, in words, and with which part of its answer if not with all of it. */
export type Problem = { text: string; part?: string };
