import { isUnanswered } from '../../domain/answers/answers.ts';
import type { FormDefinition } from '../../domain/definition/definition.ts';
import { translate } from '../../domain/definition/translate.ts';
import { fieldIdOf, isForPerson, type Violation } from '../../domain/errors/violations.ts';
import { type JsonObject, ownValue } from '../../domain/json/json.ts';
import { languageOfTag, preferredLanguages } from '../../domain/text/accept-language.ts';
import { chooseLanguage, languages } from '../../text/words.ts';
import { problemOf } from './field-words.ts';

/**
 * What is wrong with answers, or with a session's prefill, in the sentences of the form's page, for a caller whose
 * `Accept-Language` prefers a language that there are words for. Other callers, and problems that belong to no field,
 * keep the plain English.
 */
export function explainRefusals(
  violations: readonly Violation[],
  original: FormDefinition,
  given: GivenAnswers,
  acceptLanguage: string,
): Violation[] {
  const preferred = preferredLanguages(acceptLanguage);
  if (!preferred.some((tag) => Object.hasOwn(languages, languageOfTag(tag)))) return [...violations];
  const { fields, settings } = translate(original, preferred);
  const language = chooseLanguage(settings.locale, acceptLanguage);
  return violations.map((violation) => {
    const [, root = ''] = /^(answers|prefill)\./.exec(violation.path) ?? [];
    const field = root === '' ? undefined : fields.find(({ id }) => id === fieldIdOf(violation.path));
    const isOther = violation.code === 'unrecognized_keys' || isForPerson(violation);
    if (field === undefined || isOther) return violation;
    const answer = ownValue(ownValue(given, root) ?? {}, field.id);
    const text = typeof answer === 'string' ? answer : undefined;
    const lacks = isUnanswered({ ...field, required: true }, answer);
    return { ...violation, message: problemOf(field, violation, { isEmpty: lacks, language, text }).text };
  });
}

/** What was sent, by where it stood in the request. */
type GivenAnswers = { answers?: JsonObject | undefined; prefill?: JsonObject | undefined };
