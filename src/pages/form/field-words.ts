import { inputNames } from '../../domain/answers/answer-texts.ts';
import type { Field } from '../../domain/definition/definition.ts';
import { fieldIdOf, type Violation } from '../../domain/errors/violations.ts';
import { addressParts, partNames } from '../../domain/fields/address.ts';
import type { FieldType } from '../../domain/fields/field.ts';
import { uploadLimits } from '../../domain/fields/index.ts';
import { numberText, readings } from '../../domain/fields/number-text.ts';
import { labelOf, MAX_OTHER, OTHER } from '../../domain/fields/select.ts';
import { MAX_SIGNATURE_LENGTH } from '../../domain/fields/signature.ts';
import { DEFAULT_MAX_LENGTH } from '../../domain/fields/text.ts';
import { languageOfTag } from '../../domain/text/accept-language.ts';
import { isBlank } from '../../domain/text/typed-signs.ts';
import { inDigits, sizeLimitInWords } from '../../text/quantities.ts';
import { fill, type Language, type Words } from '../../text/words.ts';
import { addressWords } from './controls/address.ts';

/** The limits of a field in words; empty if there are none that a person needs to know. */
export function hintOf(field: Field, language: Language): string {
  return fieldWords[field.type].hint?.(field, language) ?? '';
}

/** The length that a field counts characters up to; undefined if it counts none, or has no limit of its own. */
export function countedLength(field: Field): number | undefined {
  return fieldWords[field.type].hint === lengthHint ? ownLength(field) : undefined;
}

/**
 * What is wrong in the page's language: the first problem of each field, by its id, and those that belong to no field
 * of the page. The texts stand beside the field's label, so that few repeat it.
 *
 * `texts` are what was posted; a field without any lacks an answer.
 */
export function problemsOf(
  violations: readonly Violation[],
  fields: readonly Field[],
  texts: ReadonlyMap<string, readonly string[]>,
  language: Language,
): { problems: Map<string, Problem>; otherProblems: string[] } {
  const problems = new Map<string, Problem>();
  const otherProblems: string[] = [];
  for (const violation of violations) {
    const field = fields.find(({ id }) => id === fieldIdOf(violation.path));
    if (field === undefined) otherProblems.push(violation.message);
    const known = field && problems.get(field.id);
    if (field === undefined || (known !== undefined && field.type !== 'address')) continue;
    const isEmpty = inputNames(field).every((name) => (texts.get(name) ?? []).every(isBlank));
    const problem = problemOf(field, violation, { isEmpty, language, text: textAt(violation.path, texts) });
    if (known === undefined) problems.set(field.id, problem);
    else if (problem.part !== undefined && !isEmpty) problems.set(field.id, together(known, problem));
  }
  return { problems, otherProblems };
}

/** What was posted at the path of an answer, of its part or of one of several choices. */
function textAt(path: string, texts: ReadonlyMap<string, readonly string[]>): string | undefined {
  const [, id = '', ...parts] = path.split('.');
  const posted = (texts.get(`${id}.${parts[0]}`) ?? texts.get(id) ?? []).filter((text) => text !== '');
  return posted[Number(parts.at(-1))] ?? posted.at(-1);
}

/** Of an address all parts are named at once. */
function together(known: Problem, { text, part = '' }: Problem): Problem {
  return { ...known, text: `${known.text} ${text}`, further: [...(known.further ?? []), part] };
}

/** What is wrong with one field, in the page's language. `isEmpty`: it has no answer; `text` is one that came. */
export function problemOf(
  field: Field,
  { path, code, received }: Violation,
  { isEmpty, language, text = '' }: { isEmpty: boolean; language: Language; text?: string | undefined },
): Problem {
  const { words, tag } = language;
  const own = fieldWords[field.type];
  if (path.endsWith(OF_A_FILE)) {
    const { tooLarge, empty, refused } = fileProblems(field, language);
    const problem = code === 'too_big' ? tooLarge : code === 'too_small' ? empty : refused;
    return { text: fill(problem, { file: received ?? words.uploadedFile }) };
  }
  const part = path.split('.')[2] ?? '';
  if (field.allowOther === true && part === OTHER) return { text: words.needOther, part };
  if (isEmpty && own.missing === 'needAnswer') return { text: askFor(field.label, language), isNamed: true };
  if (isEmpty) return { text: words[own.missing] };
  if (field.options !== undefined && code === 'invalid_enum_value' && text !== '') {
    const option = labelOf(field, text).slice(0, MAX_OTHER).toWellFormed();
    return { text: fill(words.goneOption, { option }), ...(field.rows && { part }) };
  }
  const ofPart = own.part?.(field, part, code, words);
  if (ofPart !== undefined) return { text: ofPart, part };
  const word = wordFor(own, code);
  const meant = word === undefined ? (own.meant?.(text, tag) ?? []) : [];
  if (meant.length > 0) {
    const either = new Intl.ListFormat(tag, { type: 'disjunction' }).format(meant);
    return { text: `${words[own.other]} ${fill(words.didYouMean, { readings: either })}` };
  }
  // The author's own message, if there is one.
  if (word === undefined) return { text: field.patternMessage ?? words[own.other] };
  return { text: fill(words[word], own.limits?.(field, tag) ?? {}) };
}

/** What is wrong with one file, whose name is `{file}`. */
export function fileProblems(field: Field, { words, tag }: Language): FileProblems {
  const { maxBytes = 0 } = uploadLimits(field) ?? {};
  const accept = field.type === 'signature' ? ['image/png'] : (field.accept ?? []);
  const types = typesInWords(accept, words);
  return {
    tooLarge: fill(words.fileTooLarge, { size: sizeLimitInWords(maxBytes, tag) }),
    empty: words.fileEmpty,
    refused: types === '' ? words.fileUnusable : fill(words.fileRefused, { types }),
  };
}

/** Asks for an answer by the field's label. English puts it into the sentence, unless it is a question or long. */
function askFor(label: string, { words, tag }: Language): string {
  const isSentence = /[?!.:？！。：؟]\s*$/u.test(label) || label.length > MAX_NAME;
  if (isSentence) return fill(words.needReply, { label });
  const isWord = /^\p{Lu}(?:\p{Ll}|\s)/u.test(label) && !label.startsWith('I ');
  const name = languageOfTag(tag) === 'en' && isWord ? label.charAt(0).toLowerCase() + label.slice(1) : label;
  return fill(words.needAnswer, { label: name });
}

const MAX_NAME = 60;

/** The end of a violation's path that concerns one file, not the list of them. */
const OF_A_FILE = '.file';

function wordFor({ tooSmall, tooBig, notMultiple }: FieldWords, code: string): Word | undefined {
  if (code === 'too_small') return tooSmall;
  if (code === 'too_big') return tooBig;
  return code === 'not_multiple_of' ? notMultiple : undefined;
}

const line: FieldWords = {
  missing: 'needAnswer',
  tooSmall: 'tooShort',
  tooBig: 'tooLong',
  other: 'needPattern',
  limits: ({ minLength, maxLength }, tag) => counts(minLength, maxLength, tag),
};

const choice: FieldWords = { missing: 'needChoice', other: 'needChoice' };

const oneOfOptions: FieldWords = { ...choice, tooBig: 'tooLong', limits: () => ({ max: MAX_OTHER }) };

const anything: FieldWords = { missing: 'needAnswer', other: 'refused' };

/** What is said of each type of field beside its label, which the texts do not repeat. */
const fieldWords: Readonly<Record<FieldType, FieldWords>> = {
  text: { ...line, hint: lengthHint },
  textarea: { ...line, hint: lengthHint },
  email: { ...line, missing: 'needEmail', other: 'needEmail' },
  url: { ...line, missing: 'needUrl', other: 'needUrl' },
  phone: { ...line, missing: 'needPhone', other: 'needPhone' },
  number: {
    missing: 'needAnswer',
    tooSmall: 'tooLow',
    tooBig: 'tooHigh',
    notMultiple: 'notMultiple',
    other: 'needNumber',
    limits: numberLimits,
    meant: (text, tag) => readings(text).map((number) => numberText(number, tag)),
    hint: (field, { words, tag }) =>
      between([words.atLeast, words.atMost, words.between], numberLimits(field, tag)),
  },
  boolean: choice,
  checkbox: { missing: 'needTick', other: 'needTick' },
  date: momentWords('needDate', { dateStyle: 'long' }),
  time: momentWords('needTime'),
  datetime: momentWords('needDate', { dateStyle: 'medium', timeStyle: 'short' }, 'zoneUtc'),
  select: oneOfOptions,
  radio: oneOfOptions,
  multi_select: {
    ...choice,
    tooSmall: 'tooFewChoices',
    tooBig: 'tooManyChoices',
    limits: countsOf,
    hint: (field, { words }) =>
      between([words.chooseAtLeast, words.chooseAtMost, words.chooseBetween], countsOf(field)),
  },
  hidden: anything,
  file: {
    missing: 'needFile',
    tooBig: 'tooManyFiles',
    other: 'needFile',
    limits: ({ maxFiles: max }) => ({ max }),
    hint: fileHint,
  },
  rating: choice,
  scale: choice,
  statement: anything,
  ranking: { missing: 'needOrder', other: 'needOrder', hint: (_field, { words }) => words.rankingHint },
  matrix: {
    ...choice,
    part: ({ rows = [] }, part, _code, words) => {
      const row = rows.find(({ value }) => value === part);
      return row && fill(words.needRow, { row: row.label });
    },
  },
  address: {
    ...anything,
    part: (_field, part, code, words) => {
      const name = partNames.find((each) => each === part);
      if (name === undefined) return undefined;
      if (code === 'too_big') return fill(words.tooLong, { max: addressParts[name].maxLength });
      return fill(words.needPart, { part: words[addressWords[name].label] });
    },
  },
  signature: {
    missing: 'needSignature',
    tooBig: 'tooLong',
    other: 'needSignature',
    limits: () => ({ max: MAX_SIGNATURE_LENGTH }),
  },
};

function lengthHint(field: Field, { words, tag }: Language): string {
  const limits = counts(field.minLength || undefined, ownLength(field), tag);
  return between([words.lengthAtLeast, words.lengthAtMost, words.lengthBetween], limits);
}

/** Nothing is said of the length that every field takes. */
function ownLength({ maxLength = DEFAULT_MAX_LENGTH }: Field): number | undefined {
  return maxLength < DEFAULT_MAX_LENGTH ? maxLength : undefined;
}

function countsOf({ minItems, maxItems }: Field): Limits {
  return { min: minItems || undefined, max: maxItems };
}

/** A bound of a number may be a year, which has no separators; a count has them. */
function numberLimits({ min, max, step }: Field, tag: string): Limits {
  const inWords = (bound: Limits['min']) => (typeof bound === 'number' ? numberText(bound, tag) : bound);
  return { min: inWords(min), max: inWords(max), step: inWords(step) };
}

function counts(min: number | undefined, max: number | undefined, tag: string): Limits {
  return { min: min && inDigits(min, tag), max: max && inDigits(max, tag) };
}

/** Bounds are written in a style of dates, or stand as they are. */
function momentWords(other: Word, style?: Intl.DateTimeFormatOptions, note?: Word): FieldWords {
  const limits = ({ min, max }: Field, tag: string): Limits => {
    // Making a format takes longer than the rest of the field.
    if (style === undefined || (min === undefined && max === undefined)) return { min, max };
    const format = new Intl.DateTimeFormat(tag, { ...style, timeZone: 'UTC' });
    const inWords = (bound: Limits['min']) => {
      const time = typeof bound === 'string' ? Date.parse(bound) : Number.NaN;
      return Number.isNaN(time) ? bound : format.format(time);
    };
    return { min: inWords(min), max: inWords(max) };
  };
  return {
    missing: 'needAnswer',
    tooSmall: 'tooEarly',
    tooBig: 'tooLate',
    other,
    limits,
    meant: meantYears,
    hint: (field, { words, tag }) =>
      sentences(
        note === undefined ? '' : words[note],
        between([words.from, words.until, words.fromUntil], limits(field, tag)),
      ),
  };
}

/** The year that two digits stand for, which browsers take for one of the first century. */
function meantYears(text: string): string[] {
  const [, year] = /^00(\d\d)-/.exec(text) ?? [];
  return year === undefined ? [] : [`${Number(year) < 50 ? 20 : 19}${year}`];
}

function fileHint({ accept, maxBytes = 0, maxFiles = 1 }: Field, { words, tag }: Language): string {
  return sentences(
    words.dropFile,
    accept === undefined ? '' : fill(words.fileTypes, { types: typesInWords(accept, words) }),
    fill(words.sizeAtMost, { size: sizeLimitInWords(maxBytes, tag) }),
    maxFiles > 1 ? fill(words.filesAtMost, { max: maxFiles }) : '',
  );
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

function between([atLeast, atMost, both]: [string, string, string], limits: Limits): string {
  const { min, max } = limits;
  if (min !== undefined && max !== undefined) return fill(both, limits);
  if (min !== undefined) return fill(atLeast, limits);
  return max === undefined ? '' : fill(atMost, limits);
}

function sentences(...parts: string[]): string {
  return parts.filter((part) => part !== '').join(' · ');
}

type Word = keyof Words;

/** The least and the greatest as people of a language write them. */
type Limits = { [limit in 'min' | 'max' | 'step']?: string | number | undefined };

type FieldWords = {
  /** Said where there is no answer. */
  missing: Word;
  /** Said of an answer below or above `limits`, or that is no multiple; without them, what is said of any other. */
  tooSmall?: Word;
  tooBig?: Word;
  notMultiple?: Word;
  other: Word;
  /** What `tooSmall` and `tooBig` name; `tag` is a language's. */
  limits?: (field: Field, tag: string) => Limits;
  /** What a text that is no answer may stand for. */
  meant?: (text: string, tag: string) => readonly string[];
  hint?: (field: Field, language: Language) => string;
  /** Said of one part of an answer of several; undefined if there is no such part. */
  part?: (field: Field, part: string, code: string, words: Words) => string | undefined;
};

type FileProblems = Record<'tooLarge' | 'empty' | 'refused', string>;

/** What is wrong with a field, in words, and with which part of its answer if not with all of it. */
export type Problem = {
  text: string;
  part?: string;
  /** The other parts that are wrong as well. */
  further?: readonly string[];
  /** Whether the text has the field's label. */
  isNamed?: boolean;
};
