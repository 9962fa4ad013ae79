import { isLanguageTag } from '../text/accept-language.ts';
import { plainSigns } from '../text/typed-signs.ts';

// The hosted page's script imports this file too, so it imports nothing that is not as small.

/**
 * Reads a number as people of a language write it, without one as programs do; what is none, or can be read in more
 * than one way, stays text.
 */
export function readNumber(text: string, language = ''): number | string {
  const typed = text.trim();
  const [number = typed, ...others] = readings(typed, marksOf(language) ?? ofPrograms);
  return others.length === 0 ? number : typed;
}

/** A number as `readNumber` reads it in a language. */
export function numberText(number: number, language = ''): string {
  return String(number).replace('.', marksOf(language)?.decimal ?? '.');
}

/**
 * The marks of a language, given by its BCP 47 tag; undefined if none are known.
 *
 * Making a format takes longer than reading. Tags come from clients, so their number has no limit.
 */
export function marksOf(language: string): NumberMarks | undefined {
  if (language.length > MAX_TAG || !isLanguageTag(language)) return undefined;
  if (known.size > MAX_KNOWN) known.clear();
  const marks = known.get(language) ?? readMarks(language);
  known.set(language, marks);
  return marks;
}

function readMarks(language: string): NumberMarks | undefined {
  if (Intl.NumberFormat.supportedLocalesOf(language).length === 0) return undefined;
  const format = new Intl.NumberFormat(language, { numberingSystem: 'latn', useGrouping: 'always' });
  const [, group, second, ...rest] = format.formatToParts(1_234_567.5).map(({ value }) => value);
  return { group, decimal: rest.at(-2), groups: second?.length === 2 ? inPairs : inThrees };
}

/**
 * Every number that a text may mean: its last comma or point is a decimal mark, or all of it is a whole number. Each
 * mark is what it is in the language, and either where it is neither.
 */
export function readings(text: string, { group, decimal, groups }: NumberMarks = ofAnybody): number[] {
  if (text.length > MAX_LENGTH) return [];
  const [, sign = '', body = '', exponent = ''] = written.exec(plainSigns(text).trim()) ?? [];
  const end = /[,.\u066b]\d*$/.exec(body)?.[0] ?? '';
  const numbers = [end, ''].flatMap((fraction) => {
    const point = fraction.charAt(0);
    const whole = body.slice(0, body.length - fraction.length);
    const [mark = '_'] = /\D/.exec(whole) ?? [];
    if (point === group || [point, decimal, ARABIC_DECIMAL].includes(mark)) return [];
    if (!groups.test(whole.replaceAll(mark, '_'))) return [];
    return [Number(`${sign}${whole.replace(/\D/g, '')}.${fraction.slice(1)}${exponent}`)];
  });
  return [...new Set(numbers.filter(Number.isFinite))];
}

/** Every number of 64 bits, written out exactly, has room: sign, zero, point and 1,074 decimals. */
const MAX_LENGTH = 1_100;

/** A space, an apostrophe and the Arabic marks have one meaning in all languages. */
const written = /^([+-]?) ?([\d., '\u2018\u2019\u02bc\u066b\u066c]+)((?:[eE][+-]?\d{1,3})?)$/;
const ARABIC_DECIMAL = '\u066b';

/** Whole numbers, in groups or without. In India groups but the last have two digits. */
const inThrees = /^(?:\d*|[1-9]\d{0,2}(?:_\d{3})+)$/;
const inPairs = /^(?:\d*|[1-9]\d{0,2}(?:_\d{3})+|[1-9]\d?(?:_\d\d)*_\d{3})$/;
const ofPrograms = { group: ',', decimal: '.', groups: /^\d*$/ };
const ofAnybody = { group: undefined, decimal: undefined, groups: /^(?:\d*|\d+(?:_\d+)+)$/ };

/** Longer tags have extensions, which numbers do not need. */
const MAX_TAG = 35;
const MAX_KNOWN = 64;
const known = new Map<string, NumberMarks | undefined>();

type NumberMarks = { group: string | undefined; decimal: string | undefined; groups: RegExp };
