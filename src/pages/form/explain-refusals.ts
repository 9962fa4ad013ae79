import { isUnanswered } from '../../domain/answers/answers.ts';
import type { FormDefinition } from '../../domain/definition/definition.ts';
import { translate } from '../../domain/definition/translate.ts';
import { fieldIdOf, type Violation, valueAt } from '../../domain/errors/violations.ts';
import { type JsonObject, ownValue } from '../../domain/json/json.ts';
import { languageOfTag, preferredLanguages } from '../../domain/text/accept-language.ts';
import { nearestName } from '../../domain/text/nearest-name.ts';
import { chooseLanguage, fill, languages } from '../../text/words.ts';
import { problemOf } from './field-words.ts';

/**
 * What is wrong with answers, or with a session's prefill, in the sentences of the form's page, for a caller whose
 * `Accept-Language` prefers a language that there are words for. Other callers, and problems that belong to no answer,
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
  const { words } = language;
  const ids = fields.map(({ id }) => id);
  return violations.map((violation) => {
    const [, root = ''] = /^(answers|prefill)\./.exec(violation.path) ?? [];
    const field = root === '' ? undefined : fields.find(({ id }) => id === fieldIdOf(violation.path));
    if (root !== '' && violation.code === 'unrecognized_keys') {
      const name = violation.path.slice(root.length + 1);
      const meant = nearestName(name, ids);
      const hint = meant === undefined ? '' : ` ${fill(words.didYouMean, { readings: meant })}`;
      return { ...violation, message: fill(words.unknownField, { name }) + hint };
    }
    if (field === undefined || violation.byPerson) return violation;
    const answer = ownValue(ownValue(given, root) ?? {}, field.id);
    const at = valueAt(given, violation.path.split('.'));
    const text = typeof at === 'string' ? at : undefined;
    const lacks = isUnanswered({ ...field, required: true }, answer);
    return { ...violation, message: problemOf(field, violation, { isEmpty: lacks, language, text }).text };
  });
}

/** What was sent, by where it stood in the request. */
type GivenAnswers = { answers?: JsonObject | undefined; prefill?: JsonObject | undefined };
