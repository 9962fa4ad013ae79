import type { Field } from '../../domain/definition/definition.ts';
import type { Words } from '../../text/words/en.ts';
import { fill, type Language } from '../../text/words/language.ts';

/** The limits of a field in words; empty if there are none that a person needs to know. */
export function hintOf(field: Field, { words, tag }: Language): string {
  const { min, max } = boundsOf(field, tag);
  switch (field.type) {
    case 'text':
    case 'textarea':
      return lengthHint(field, words);
    case 'number':
      return between([words.atLeast, words.atMost, words.between], min, max);
    case 'date':
    case 'time':
      return between([words.from, words.until, words.fromUntil], min, max);
    case 'datetime':
      return sentences(words.zoneUtc, between([words.from, words.until, words.fromUntil], min, max));
    case 'multi_select':
      return between(
        [words.chooseAtLeast, words.chooseAtMost, words.chooseBetween],
        field.minItems || undefined,
        field.maxItems,
      );
    case 'ranking':
      return words.rankingHint;
    case 'file':
      return sentences(
        field.accept === undefined ? '' : fill(words.fileTypes, { types: typesInWords(field.accept, words) }),
        fill(words.sizeAtMost, { size: sizeInWords(field.maxBytes ?? 0, tag) }),
        (field.maxFiles ?? 1) > 1 ? fill(words.filesAtMost, { max: field.maxFiles ?? 1 }) : '',
      );
    case 'email':
    case 'url':
    case 'phone':
    case 'boolean':
    case 'checkbox':
    case 'select':
    case 'radio':
    case 'hidden':
    case 'matrix':
    case 'address':
    case 'rating':
    case 'scale':
    case 'signature':
    case 'statement':
      return '';
    default:
      return field.type satisfies never;
  }
}

/** The least and the greatest value as people of a language write dates; numbers as they are. */
export function boundsOf({ type, min, max }: Field, tag: string): Bounds {
  const style = dateStyles[type];
  // Making a format takes longer than the rest of the field.
  if (style === undefined || (min === undefined && max === undefined)) return { min, max };
  const format = new Intl.DateTimeFormat(tag, { ...style, timeZone: 'UTC' });
  const inWords = (bound: string | number | undefined) => {
    const time = typeof bound === 'string' ? Date.parse(bound) : Number.NaN;
    return Number.isNaN(time) ? bound : format.format(time);
  };
  return { min: inWords(min), max: inWords(max) };
}

/** A number of bytes as people read it: `10 MB`, `512 kB`; `1,9 MB` where the decimal point is a comma. */
export function sizeInWords(bytes: number, tag: string): string {
  if (bytes >= MEGABYTE) {
    const number = Math.floor((bytes / MEGABYTE) * 10) / 10;
    return `${number.toLocaleString(tag, { numberingSystem: 'latn' })} MB`;
  }
  return bytes >= KILOBYTE ? `${Math.floor(bytes / KILOBYTE)} kB` : `${bytes} B`;
}

/** What a file field accepts, as people call it: `application/pdf` and `.pdf` are PDF. */
function typesInWords(accept: readonly string[], words: Words): string {
  const kinds = new Map([
    ['text/plain', 'TXT'],
    ['image/*', words.images],
    ['audio/*', words.audio],
    ['video/*', words.video],
  ]);
  const names = accept.map((type) => {
    const name = /^(?:\.|application\/|image\/|text\/)([a-z\d]{2,5})$/i.exec(type)?.[1];
    return kinds.get(type) ?? name?.toUpperCase() ?? type;
  });
  return [...new Set(names)].join(', ');
}

/** Says nothing of the length that every field takes. */
function lengthHint({ minLength, maxLength }: Field, words: Words): string {
  const limit = maxLength === undefined || maxLength >= UNSAID_LENGTH ? undefined : maxLength;
  return between(
    [words.lengthAtLeast, words.lengthAtMost, words.lengthBetween],
    minLength || undefined,
    limit,
  );
}

function between(
  [atLeast, atMost, both]: [string, string, string],
  min: string | number | undefined,
  max: string | number | undefined,
): string {
  if (min !== undefined && max !== undefined) return fill(both, { min, max });
  if (min !== undefined) return fill(atLeast, { min });
  return max === undefined ? '' : fill(atMost, { max });
}

function sentences(...parts: string[]): string {
  return parts.filter((part) => part !== '').join(' · ');
}

/** The service's own limit where a form sets none. */
export const UNSAID_LENGTH = 10_000;

const dateStyles: Partial<Record<Field['type'], Intl.DateTimeFormatOptions>> = {
  date: { dateStyle: 'long' },
  datetime: { dateStyle: 'medium', timeStyle: 'short' },
};

const KILOBYTE = 1024;
const MEGABYTE = 1024 * 1024;

type Bounds = { min: string | number | undefined; max: string | number | undefined };
