import { languageOfTag, preferredLanguages } from '../../domain/accept-language.ts';
import { ar } from './ar.ts';
import { de } from './de.ts';
import { en, type Words } from './en.ts';
import { es } from './es.ts';
import { fr } from './fr.ts';
import { ja } from './ja.ts';
import { pt } from './pt.ts';
import { zh } from './zh.ts';

/** Every language that the pages speak, by its BCP 47 language subtag. */
export const languages: Record<string, Words> = { en, de, fr, es, pt, ja, zh, ar };

/**
 * The language of a page: the form's, else the person's favourite among those there are, else
 * English.
 *
 * A form in a language that is not there keeps its tag, since the words of its author are most
 * of the page; the page's own words are then the person's.
 */
export function chooseLanguage(locale: string, acceptLanguage = ''): Language {
  const preferred = preferredLanguages(acceptLanguage);
  const wanted = locale === '' ? preferred : [locale, ...preferred];
  const spoken = wanted.find((tag) => Object.hasOwn(languages, languageOfTag(tag))) ?? 'en';
  const tag = locale === '' ? spoken : locale;
  return {
    tag,
    spoken: languageOfTag(spoken),
    direction: rightToLeft.has(languageOfTag(tag)) ? 'rtl' : 'ltr',
    words: languages[languageOfTag(spoken)] ?? en,
  };
}

/** Fills the places of a text: `fill('At most {max}', { max: 3 })`. */
export function fill(text: string, values: Record<string, string | number>): string {
  return text.replace(/\{(\w+)\}/g, (place, name: string) => String(values[name] ?? place));
}

/** Languages whose usual script runs from right to left. */
const rightToLeft = new Set(['ar', 'ckb', 'dv', 'fa', 'he', 'ks', 'ps', 'sd', 'ug', 'ur', 'yi']);

/** How a page speaks and in which direction it is read. `spoken` is the language of its own words. */
export type Language = { tag: string; spoken: string; direction: 'ltr' | 'rtl'; words: Words };
