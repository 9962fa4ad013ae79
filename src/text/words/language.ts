import { languageOfTag, preferredLanguages } from '../../domain/text/accept-language.ts';
import { ar } from './ar.ts';
import { de } from './de.ts';
import { en, type Words } from './en.ts';
import { es } from './es.ts';
import { fr } from './fr.ts';
import { ja } from './ja.ts';
import { pt } from './pt.ts';
import { zh } from './zh.ts';

/** The words of each language, by its BCP 47 language subtag. */
export const languages = { en, de, fr, es, pt, ja, zh, ar } satisfies Record<string, Words>;

/**
 * The language of a page: the form's, else the first of the person's preferred languages that we have, else
 * English.
 *
 * A form in a language that we do not have keeps its tag, since most words of the page are its author's; our own
 * words are then in the person's language.
 */
export function chooseLanguage(locale: string, acceptLanguage = ''): Language {
  const preferred = preferredLanguages(acceptLanguage);
  const wanted = locale === '' ? preferred : [locale, ...preferred];
  const chosen = wanted.find((tag) => isSpoken(languageOfTag(tag))) ?? 'en';
  const subtag = languageOfTag(chosen);
  const spoken = isSpoken(subtag) ? subtag : 'en';
  const tag = locale === '' ? chosen : locale;
  return {
    tag,
    spoken,
    direction: rightToLeft.has(languageOfTag(tag)) ? 'rtl' : 'ltr',
    words: languages[spoken],
  };
}

function isSpoken(subtag: string): subtag is Spoken {
  return Object.hasOwn(languages, subtag);
}

/** Fills in the placeholders of a text: `fill('At most {max}', { max: 3 })`. */
export function fill(text: string, values: Record<string, string | number>): string {
  return text.replace(/\{(\w+)\}/g, (place, name: string) => String(values[name] ?? place));
}

/** Languages whose usual script runs from right to left. */
const rightToLeft = new Set(['ar', 'ckb', 'dv', 'fa', 'he', 'ks', 'ps', 'sd', 'ug', 'ur', 'yi']);

/** A language that there are words in. */
export type Spoken = keyof typeof languages;

/** The language tag and the direction of a page. `spoken` is the language of our own words on it. */
export type Language = { tag: string; spoken: Spoken; direction: 'ltr' | 'rtl'; words: Words };
