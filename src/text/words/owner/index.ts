import { chooseLanguage, type Language } from '../language.ts';
import { en, type OwnerWords } from './en.ts';

/** The words of the pages for owners, by BCP 47 language subtag. */
export const ownerLanguages: Record<string, OwnerWords> = { en };

/** The language of a page for owners: the first of the person's preferred languages that we have, else English. */
export function chooseOwnerLanguage(acceptLanguage = ''): OwnerLanguage {
  const language = chooseLanguage('', acceptLanguage);
  const words = ownerLanguages[language.spoken];
  return words === undefined ? { ...chooseLanguage('en'), owner: en } : { ...language, owner: words };
}

/** A language with the words of these pages beside those of the others. */
export type OwnerLanguage = Language & { owner: OwnerWords };
