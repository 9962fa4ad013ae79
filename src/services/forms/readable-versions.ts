import { localeOf } from '../../domain/answers/answer-texts.ts';
import { markFormerChoices } from '../../domain/answers/former-choices.ts';
import type { FormDefinition } from '../../domain/definition/definition.ts';
import { translate } from '../../domain/definition/translate.ts';
import type { FormReader } from './form-access.ts';

/**
 * Reads the versions of a form as people read answers to them: in the first of the preferred languages that the form
 * has, with the options and rows marked that are no longer offered.
 */
export function createVersionReader(
  forms: FormReader,
  currentVersionId: string,
  preferred: readonly string[],
): ReadVersion {
  const known = new Map<string, FormDefinition>();
  return async (versionId) => {
    const read = known.get(versionId);
    if (read !== undefined) return read;
    const { definition: current } = await forms.version(currentVersionId);
    const { definition } = await forms.version(versionId);
    const translated = translate(definition, preferred);
    const made = markFormerChoices(translated, current, localeOf(translated, preferred));
    known.set(versionId, made);
    return made;
  };
}

export type ReadVersion = (versionId: string) => Promise<FormDefinition>;
