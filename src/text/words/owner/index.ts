import { chooseLanguage, type Language, type Spoken } from '../language.ts';
import { ar } from './ar.ts';
import { de } from './de.ts';
import { en, type OwnerWords } from './en.ts';
import { es } from './es.ts';
import { fr } from './fr.ts';
import { ja } from './ja.ts';
import { pt } from './pt.ts';
import { zh } from './zh.ts';

/** The words of the pages for owners, by BCP 47 language subtag. */
const ownerLanguages: Record<Spoken, OwnerWords> = { en, de, fr, es, pt, ja, zh, ar };

/** The language of a page for owners: the first of the person's preferred languages that we have, else English. */
export function chooseOwnerLanguage(acceptLanguage = ''): OwnerLanguage {
  const language = chooseLanguage('', acceptLanguage);
  return { ...language, owner: ownerLanguages[language.spoken] };
}

/** A language with the words of these pages beside those of the others. */
export type OwnerLanguage = Language & { owner: OwnerWords };
