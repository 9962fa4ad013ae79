import { checkWebhookUrl } from '../addresses/ip-address.ts';
import { type ComparisonProblems, conditionProblems, countSearches } from '../conditions/condition-rules.ts';
import { errorMessage } from '../errors/system-errors.ts';
import { custom, pathOf, required, type Violation } from '../errors/violations.ts';
import type { FormFacts } from '../fields/field-type.ts';
import { DEFAULT_MAX_LENGTH } from '../fields/text.ts';
import { isObject } from '../json/json.ts';
import { formLimits } from '../limits/limits.ts';
import {
  lengthWithin,
  MAX_MATCH_STEPS,
  type Pattern,
  parsePattern,
  readPattern,
  stepsFor,
} from '../patterns/pattern.ts';
import { isBlank } from '../text/typed-signs.ts';
import { comparisonProblems } from './comparisons.ts';
import { answeredField, fieldProblems } from './field-rules.ts';
import { isOrigin } from './settings.ts';
import { translationProblems } from './translations.ts';

/**
 * Returns what is wrong between the parts of a definition: the rules that its schema can't express.
 *
 * Checks the definition as it was sent, part by part, so that a part of the wrong shape hides no problem of
 * another. What is missing or of the wrong type is left to the schema.
 */
export function definitionProblems(input: unknown, options: DefinitionOptions): Violation[] {
  if (!isObject(input)) return [];
  const fields = Array.isArray(input.fields) ? input.fields.slice(0, formLimits.fields).map(readField) : [];
  const patterns = patternProblems(fields.map((field) => field.input));
  return [
    ...fields.flatMap(({ input: field }, index) =>
      fieldProblems(field, `fields.${index}`, { ...options, patternFits: !patterns.has(index) }),
    ),
    ...patterns.values(),
    ...sharedIds(fields),
    ...pageProblems(input.pages, fields),
    ...translationProblems(input),
    ...visibilityProblems(fields, options),
    ...(options.isInUse === true ? [] : [...originProblems(input.settings), ...blankLabels(input)]),
    ...tooManySearches(fields),
    ...deliveryProblems(input.delivery, fields, options),
    ...(options.keyless ? keylessProblems(input, fields) : []),
  ];
}

function readField(input: unknown): FieldSent {
  const { id, type } = isObject(input) ? input : {};
  return { input, id: typeof id === 'string' ? id : undefined, type };
}

function sharedIds(fields: FieldSent[]): Violation[] {
  return fields.flatMap(({ id }, index) => {
    const first = fields.findIndex((field) => field.id === id);
    if (id === undefined || first === index) return [];
    return [custom(`fields.${index}.id`, `Field ids must be unique; fields.${first} has the same`)];
  });
}

/** A label of spaces can't be read: people would answer what they are not asked. */
function blankLabels(input: unknown, path: string[] = []): Violation[] {
  const name = path.at(-1) ?? '';
  // A translation has labels by the values of options and rows.
  const isTranslated = path.at(-4) === 'fields' && ['options', 'rows'].includes(path.at(-2) ?? '');
  const isLabel = /label$/i.test(name) || isTranslated;
  if (typeof input === 'string' && input !== '' && isLabel && isBlank(input)) {
    return [{ path: pathOf(...path), code: 'invalid_string', message: 'Expected a label that can be read' }];
  }
  if (typeof input !== 'object' || input === null) return [];
  return Object.entries(input).flatMap(([key, value]) => blankLabels(value, [...path, key]));
}

function originProblems(settings: unknown): Violation[] {
  const message = 'Expected an origin such as https://example.com, without a path or wildcard';
  return ['allowedOrigins', 'embedOrigins'].flatMap((name) => {
    const origins = isObject(settings) && Array.isArray(settings[name]) ? settings[name] : [];
    return origins.flatMap((origin: unknown, index): Violation[] =>
      typeof origin !== 'string' || isOrigin(origin)
        ? []
        : [{ path: `settings.${name}.${index}`, code: 'invalid_string', message }],
    );
  });
}

/** A title of a step that no field is on would never be shown. */
function pageProblems(pages: unknown, fields: FieldSent[]): Violation[] {
  if (!Array.isArray(pages)) return [];
  const numbers = fields.map(({ input }) =>
    isObject(input) && typeof input.page === 'number' ? input.page : 1,
  );
  const last = Math.max(1, ...numbers);
  if (pages.length <= last) return [];
  return [custom(`pages.${last}`, `The last step with a field is ${last}`)];
}

function visibilityProblems(fields: FieldSent[], options: DefinitionOptions): Violation[] {
  const earlier = new Map<string, ComparisonProblems | undefined>();
  return fields.flatMap(({ id, input }, index) => {
    const { visibleWhen } = isObject(input) ? input : {};
    const problems = conditionProblems(visibleWhen, earlier, `fields.${index}.visibleWhen`);
    if (id !== undefined) earlier.set(id, options.isInUse === true ? undefined : judgeOf(input, options));
    return problems;
  });
}

/** Judges what is compared with a field's answers, once a condition asks, by what is known of them. */
function judgeOf(input: unknown, form: FormFacts): ComparisonProblems {
  let judge: ComparisonProblems | undefined;
  return (...compared) => {
    judge ??= comparisonProblems(answeredField(input, form));
    return judge(...compared);
  };
}

/** They are made at each submission, in texts as long as fit into one: 4 ns for each character. */
function tooManySearches(fields: FieldSent[]): Violation[] {
  let count = 0;
  return fields.flatMap(({ input }, index) => {
    const added = isObject(input) ? countSearches(input.visibleWhen) : 0;
    count += added;
    if (added === 0 || count <= MAX_SEARCHES) return [];
    const message = `The conditions of a form have "contains" at most ${MAX_SEARCHES} times`;
    return [{ path: `fields.${index}.visibleWhen`, code: 'too_big', message }];
  });
}

/** At worst 50 ms for a form made without a key, four times as long for others. */
const MAX_SEARCHES = 200;

function deliveryProblems(delivery: unknown, fields: FieldSent[], options: DefinitionOptions): Violation[] {
  if (!isObject(delivery)) return [];
  if (delivery.type === 'webhook') return urlProblems(delivery, options);
  if (delivery.type !== 'email') return [];
  const { replyTo, answererName, autoresponse } = delivery;
  return [
    ...namedFieldProblems('email', replyTo, fields, 'delivery.replyTo'),
    ...namedFieldProblems('text', answererName, fields, 'delivery.answererName'),
    ...(isObject(autoresponse)
      ? namedFieldProblems('email', autoresponse.to, fields, 'delivery.autoresponse.to')
      : []),
    ...sharedRecipients(delivery.to),
  ];
}

function urlProblems(
  { url }: { url?: unknown },
  { allowPrivateUrls, keptUrl }: DefinitionOptions,
): Violation[] {
  const path = 'delivery.url';
  if (url === undefined && keptUrl === undefined) return [required(path)];
  if (typeof url !== 'string') return [];
  const message = checkWebhookUrl(url, { allowPrivate: allowPrivateUrls });
  return message === undefined ? [] : [{ path, code: 'invalid_string', message }];
}

function namedFieldProblems(type: string, id: unknown, fields: FieldSent[], path: string): Violation[] {
  if (typeof id !== 'string') return [];
  const named = fields.some((field) => field.id === id && field.type === type);
  return named ? [] : [custom(path, `Must be the id of a field of type "${type}"`)];
}

function sharedRecipients(to: unknown): Violation[] {
  if (!Array.isArray(to)) return [];
  const seen = new Set<string>();
  return to.flatMap((address, index) => {
    const known = seen.size;
    if (seen.add(String(address).toLowerCase()).size > known) return [];
    return [custom(`delivery.to.${index}`, 'Recipients must be unique')];
  });
}

/** Anyone can make a form without a key, so such forms send no email to other addresses and store no files. */
function keylessProblems({ delivery, settings }: Record<string, unknown>, fields: FieldSent[]): Violation[] {
  const mail = isObject(delivery) && delivery.type === 'email' ? delivery : {};
  const recipients = mail.to !== undefined && !(Array.isArray(mail.to) && mail.to.length === 0);
  return [
    ...fields.flatMap(({ type }, index) => (type === 'file' ? [needsKey(`fields.${index}.type`)] : [])),
    ...fields.flatMap(drawnProblems),
    ...(recipients ? [needsKey('delivery.to')] : []),
    ...(mail.autoresponse !== undefined ? [needsKey('delivery.autoresponse')] : []),
    ...['onePerRespondent', 'allowCorrection'].flatMap((name) =>
      isObject(settings) && settings[name] === true ? [needsKey(`settings.${name}`)] : [],
    ),
  ];
}

/** A drawn signature is stored as a file. */
function drawnProblems({ input, type }: FieldSent, index: number): Violation[] {
  const accept = type === 'signature' && isObject(input) && Array.isArray(input.accept) ? input.accept : [];
  return accept.flatMap((way, at) => (way === 'drawn' ? [needsKey(`fields.${index}.accept.${at}`)] : []));
}

function needsKey(path: string): Violation {
  return custom(path, 'Only forms made with an API key may have this');
}

type FieldSent = { input: unknown; id: string | undefined; type: unknown };
export type DefinitionOptions = {
  keyless: boolean;
  allowPrivateUrls: boolean;
  /** The URL of a webhook that leaves it out; absent: it is required. */
  keptUrl?: string;
  /** The definition that is published: it is taken again without the checks that came later. */
  current?: object;
  /** Whether it is of a version in use, whose author alone could correct what is refused since. */
  isInUse?: boolean;
};

/**
 * Returns what is wrong with the patterns of a form's fields, as they were sent, by the index of the field.
 *
 * Patterns are matched in time linear in the text, but also in the size of the pattern's program, and a repeat
 * count of a few characters makes that large. So there are bounds on what the patterns of a form take together,
 * at worst; where they are passed, the most expensive patterns are refused. Nothing is compiled before that is known.
 */
export function patternProblems(fields: readonly unknown[]): Map<number, Violation> {
  const problems = new Map<number, Violation>();
  const patterned = fields.flatMap(patternFieldsOf);
  const refuse = ({ index }: PatternField, message: string) =>
    problems.set(index, { path: `fields.${index}.pattern`, code: 'invalid_string', message });
  const accepted = () => patterned.filter(({ index }) => !problems.has(index));

  for (const field of tooManyToSetUp(patterned)) refuse(field, setupMessage(field));
  for (const field of accepted()) {
    const fault = syntaxFault(field.pattern);
    if (fault !== undefined) refuse(field, `Unsupported pattern: ${fault}`);
  }
  const { refused, left } = tooManyToMatch(accepted());
  for (const field of refused) refuse(field, matchMessage(field, left / refused.length));
  return problems;
}

/** The schema refuses longer patterns. */
function patternFieldsOf(input: unknown, index: number): PatternField[] {
  const { pattern: source, maxLength } = isObject(input) ? input : {};
  if (typeof source !== 'string' || source.length > formLimits.pattern) return [];
  const pattern = readPattern(source);
  const given = typeof maxLength === 'number' ? Math.max(0, maxLength) : DEFAULT_MAX_LENGTH;
  return [{ index, pattern, length: Math.min(given, pattern.longest) }];
}

/** A pattern that several fields have is set up once. */
function tooManyToSetUp(fields: readonly PatternField[]): PatternField[] {
  const setups = new Map(fields.map(({ pattern }) => [pattern.source, pattern.setup]));
  let total = sum([...setups.values()]);
  const refused = new Set<string>();
  for (const [source, setup] of [...setups].sort(([, one], [, other]) => other - one)) {
    if (total <= MAX_SETUP_STEPS) break;
    refused.add(source);
    total -= setup;
  }
  return fields.filter(({ pattern }) => refused.has(pattern.source));
}

function syntaxFault({ source }: Pattern): string | undefined {
  try {
    parsePattern(source);
    return undefined;
  } catch (error) {
    return errorMessage(error);
  }
}

/** The most expensive fields, without which the others can be matched in time, and the steps that these leave. */
function tooManyToMatch(fields: readonly PatternField[]): { refused: PatternField[]; left: number } {
  const rest = fields.toSorted((one, other) => stepsOf(other) - stepsOf(one));
  let left = MAX_MATCH_STEPS - sum(rest.map(stepsOf));
  let refused = 0;
  for (const field of rest) {
    if (left >= 0) break;
    left += stepsOf(field);
    refused += 1;
  }
  return { refused: rest.slice(0, refused), left };
}

function stepsOf({ pattern, length }: PatternField): number {
  return stepsFor(pattern, length);
}

function setupMessage({ pattern }: PatternField): string {
  return (
    `Takes ${words(pattern.setup)} steps to compile, and the patterns of a form may take ` +
    `${words(MAX_SETUP_STEPS)} together: use smaller repeat counts, fewer classes such as \\pL, no (?i)`
  );
}

/** `left` are the steps that the field can have. */
function matchMessage({ pattern, length }: PatternField, left: number): string {
  const cost =
    `Takes up to ${words(stepsFor(pattern, length))} steps to match (${words(pattern.size)} instructions over ` +
    `${words(length)} characters), and the patterns of a form may take ${words(MAX_MATCH_STEPS)} together: `;
  const largest = lengthWithin(pattern, left);
  const further = largest < 1 ? '' : `set maxLength to at most ${words(largest)}, or `;
  return `${cost}${further}use smaller repeat counts`;
}

function words(count: number): string {
  return Math.min(count, Number.MAX_SAFE_INTEGER).toLocaleString('en');
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}

/** 20 ms, after which the compiled patterns are kept. Reading the patterns, a fifth of it, is done for every check. */
const MAX_SETUP_STEPS = 2_000_000;

type PatternField = {
  index: number;
  pattern: Pattern;
  /** The most characters of a text that is matched. */
  length: number;
};
