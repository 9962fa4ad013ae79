import { languageOfTag, preferredLanguages } from '../domain/text/accept-language.ts';
import { inDigits } from './quantities.ts';
import ar from './words/ar.json' with { type: 'json' };
import de from './words/de.json' with { type: 'json' };
import en from './words/en.json' with { type: 'json' };
import es from './words/es.json' with { type: 'json' };
import fr from './words/fr.json' with { type: 'json' };
import ja from './words/ja.json' with { type: 'json' };
import pt from './words/pt.json' with { type: 'json' };
import zh from './words/zh.json' with { type: 'json' };

/**
 * The words of each language, by its BCP 47 language subtag. `{…}` is a placeholder; every language has the same
 * ones.
 */
export const languages = { en, de, fr, es, pt, ja, zh, ar } satisfies Record<string, typeof en>;

/**
 * The language of a page or email: the form's, else the first of the person's preferred languages that we have,
 * else English.
 *
 * A form in a language that we do not have keeps its tag, since most words of the page are its author's; our own
 * words are then in the person's language.
 */
export function chooseLanguage(locale = '', acceptLanguage = ''): Language {
  const preferred = preferredLanguages(acceptLanguage);
  const wanted = locale === '' ? preferred : [locale, ...preferred];
  const chosen = wanted.find((tag) => isSpoken(languageOfTag(tag))) ?? 'en';
  const subtag = languageOfTag(chosen);
  const spoken = isSpoken(subtag) ? subtag : 'en';
  const tag = locale === '' ? chosen : locale;
  const { page, owner, mail } = languages[spoken];
  const isForeign = languageOfTag(tag) !== spoken;
  return {
    tag,
    spoken,
    direction: directionOf(tag),
    ownDirection: locale === '' ? 'auto' : undefined,
    ours: isForeign ? { lang: spoken, dir: directionOf(spoken) } : {},
    theirs: isForeign ? { lang: tag, dir: directionOf(tag) } : {},
    words: page,
    owner,
    mail,
  };
}

function isSpoken(subtag: string): subtag is keyof typeof languages {
  return Object.hasOwn(languages, subtag);
}

/** Fills in the placeholders of a text: `fill('At most {max}', { max: 3 })`. */
export function fill(text: string, values: Record<string, string | number | undefined>): string {
  return text.replace(/\{(\w+)\}/g, (place, name: string) => String(values[name] ?? place));
}

/** The text for a count: `one` where a language writes this number as a singular. Both may have `{n}`. */
export function fillCount(one: string, other: string, count: number, tag: string): string {
  const isOne = new Intl.PluralRules(tag).select(count) === 'one';
  return fill(isOne ? one : other, { n: inDigits(count, tag) });
}

function directionOf(tag: string): 'ltr' | 'rtl' {
  return rightToLeft.has(languageOfTag(tag)) ? 'rtl' : 'ltr';
}

/** Languages whose usual script runs from right to left. */
const rightToLeft = new Set(['ar', 'ckb', 'dv', 'fa', 'he', 'ks', 'ps', 'sd', 'ug', 'ur', 'yi']);

/** The words of the pages, and what emails say of answers. */
export type Words = (typeof en)['page'];

/** The words of emails. */
export type MailWords = (typeof en)['mail'];

/** The attributes that tell a language. */
type Marks = { lang?: string; dir?: 'ltr' | 'rtl' };

/** The language tag and the direction of a page or email, and its words. `spoken` is the language of our own words. */
export type Language = {
  tag: string;
  spoken: keyof typeof languages;
  direction: 'ltr' | 'rtl';
  words: Words;
  /** The direction of the form's own texts where its language is not known: that of their first letter. */
  ownDirection: 'auto' | undefined;
  /** The attributes of our own words, and of the form's texts among them, where these are not of one language. */
  ours: Marks;
  theirs: Marks;
  /** Whether addresses in the form's own texts are links. */
  linksAddresses?: boolean;
  /** The words of the pages for owners. */
  owner: (typeof en)['owner'];
  mail: MailWords;
};
