import { RE2JS } from 're2js';
import { conditionProblems } from '../conditions/condition-rules.ts';
import { checkWebhookUrl } from '../delivery/public-address.ts';
import { DEFAULT_MAX_LENGTH } from '../fields/text.ts';
import { isObject } from '../json.ts';
import type { Violation } from '../violations.ts';
import { fieldProblems } from './field-rules.ts';

/**
 * Returns what is wrong between the parts of a definition: the rules that its schema can't express.
 *
 * Checks the definition as it was sent, part by part, so that a part of the wrong shape hides no problem of
 * another. What is missing or of the wrong type is left to the schema.
 */
export function definitionProblems(input: unknown, options: RuleOptions): Violation[] {
  if (!isObject(input)) return [];
  const fields = Array.isArray(input.fields) ? input.fields.slice(0, MAX_FIELDS).map(readField) : [];
  const patterns = patternProblems(fields.map((field) => field.input));
  const unfit = new Set(patterns.map(({ path }) => path));
  return [
    ...fields.flatMap(({ input: field }, index) =>
      fieldProblems(field, `fields.${index}`, !unfit.has(`fields.${index}.pattern`)),
    ),
    ...patterns,
    ...sharedIds(fields),
    ...fields.flatMap((field, index) => visibilityProblems(field, fields.slice(0, index), index)),
    ...deliveryProblems(input.delivery, fields, options),
    ...(options.keyless ? keylessProblems(input.delivery, fields) : []),
  ];
}

function readField(input: unknown): FieldSent {
  const { id, type } = isObject(input) ? input : {};
  return { input, id: typeof id === 'string' ? id : undefined, type };
}

/**
 * What is wrong with the patterns of a form's fields, as they were sent.
 *
 * RE2 takes time linear in the text, but also linear in the size of the pattern's program, and a
 * repeat count of a few characters makes that large. So the size of a pattern times the
 * longest text it may meet is limited, and so is the size of all patterns of a form; what is beyond is not compiled.
 */
function patternProblems(fields: readonly unknown[]): Violation[] {
  let room = MAX_FORM_SIZE;
  return fields.flatMap((field, index) => {
    const { pattern, maxLength } = isObject(field) ? field : {};
    if (typeof pattern !== 'string' || pattern.length > MAX_PATTERN_LENGTH) return [];
    const longest = typeof maxLength === 'number' ? maxLength : DEFAULT_MAX_LENGTH;
    const size = room > 0 ? programSize(pattern) : Number.POSITIVE_INFINITY;
    if (typeof size === 'number') room -= size;
    const message = typeof size === 'string' ? size : tooComplex(size * longest, room);
    return message === undefined
      ? []
      : [{ path: `fields.${index}.pattern`, code: 'invalid_string', message }];
  });
}

/** The size of a pattern's program, or what is unsupported in the pattern. */
function programSize(pattern: string): number | string {
  try {
    return RE2JS.compile(pattern).programSize();
  } catch (error) {
    return `Unsupported pattern: ${error instanceof Error ? error.message : String(error)}`;
  }
}

function tooComplex(cost: number, room: number): string | undefined {
  if (room < 0) return 'The patterns of the form are too complex: use smaller repeat counts';
  return cost > MAX_COST ? 'Too complex a pattern for such long texts: lower maxLength' : undefined;
}

function sharedIds(fields: FieldSent[]): Violation[] {
  return fields.flatMap(({ id }, index) => {
    const first = fields.findIndex((field) => field.id === id);
    if (id === undefined || first === index) return [];
    return [custom(`fields.${index}.id`, `Field ids must be unique; fields.${first} has the same`)];
  });
}

function visibilityProblems(field: FieldSent, before: FieldSent[], index: number): Violation[] {
  const { visibleWhen } = isObject(field.input) ? field.input : {};
  const earlier = new Set(before.flatMap(({ id }) => (id === undefined ? [] : [id])));
  return conditionProblems(visibleWhen, earlier, `fields.${index}.visibleWhen`);
}

function deliveryProblems(delivery: unknown, fields: FieldSent[], options: RuleOptions): Violation[] {
  if (!isObject(delivery)) return [];
  if (delivery.type === 'webhook') return urlProblems(delivery.url, options);
  if (delivery.type !== 'email') return [];
  const { replyTo, autoresponse } = delivery;
  return [
    ...emailFieldProblems(replyTo, fields, 'delivery.replyTo'),
    ...(isObject(autoresponse)
      ? emailFieldProblems(autoresponse.to, fields, 'delivery.autoresponse.to')
      : []),
    ...sharedRecipients(delivery.to),
  ];
}

function urlProblems(url: unknown, { allowPrivateUrls }: RuleOptions): Violation[] {
  if (typeof url !== 'string') return [];
  const message = checkWebhookUrl(url, { allowPrivate: allowPrivateUrls });
  return message === undefined ? [] : [{ path: 'delivery.url', code: 'invalid_string', message }];
}

function emailFieldProblems(id: unknown, fields: FieldSent[], path: string): Violation[] {
  if (typeof id !== 'string') return [];
  const named = fields.some((field) => field.id === id && field.type === 'email');
  return named ? [] : [custom(path, 'Must be the id of a field of type "email"')];
}

function sharedRecipients(to: unknown): Violation[] {
  if (!Array.isArray(to)) return [];
  const addresses = to.map((address) => String(address).toLowerCase());
  return addresses.flatMap((address, index) => {
    if (addresses.indexOf(address) === index) return [];
    return [custom(`delivery.to.${index}`, 'Recipients must be unique')];
  });
}

/** Anyone can make a form without a key, so such forms send no mail to other addresses and store no files. */
function keylessProblems(delivery: unknown, fields: FieldSent[]): Violation[] {
  const mail = isObject(delivery) && delivery.type === 'email' ? delivery : {};
  const recipients = mail.to !== undefined && !(Array.isArray(mail.to) && mail.to.length === 0);
  return [
    ...fields.flatMap(({ type }, index) => (type === 'file' ? [needsKey(`fields.${index}.type`)] : [])),
    ...(recipients ? [needsKey('delivery.to')] : []),
    ...(mail.autoresponse !== undefined ? [needsKey('delivery.autoresponse')] : []),
  ];
}

function needsKey(path: string): Violation {
  return custom(path, 'Only forms made with an API key may have this');
}

function custom(path: string, message: string): Violation {
  return { path, code: 'custom', message };
}

/** The schema refuses more, which need no check one by one. */
const MAX_FIELDS = 100;

/** The schema refuses longer ones. */
const MAX_PATTERN_LENGTH = 256;

/** `[a-z0-9-]{1,200}` is of size 400. A hundred fields with everyday patterns stay below it. */
const MAX_FORM_SIZE = 20_000;

/** Program size by characters: a pattern of size 500 over 10,000 characters, a quarter second at worst. */
const MAX_COST = 5_000_000;

type FieldSent = { input: unknown; id: string | undefined; type: unknown };
type RuleOptions = { keyless: boolean; allowPrivateUrls: boolean };
