import type { Violation } from '../errors/violations.ts';
import { isObject } from '../json/json.ts';
import { formLimits, MAX_QUESTIONS } from '../limits/limits.ts';
import { checkDefinition, type DefinitionResult } from './definition.ts';

/**
 * Checks the questions that come with a session as the definition of a hidden form. `name`, `slug`, and the fields' ids
 * and types may be absent. It has no `delivery`: its answers go to who asks. Answers are kept for `retentionDays`, or
 * else as long as its own settings say, or 30 days. A definition that was accepted once is accepted again, unchanged.
 */
export function checkQuestions(
  input: unknown,
  { retentionDays, allowPrivateUrls }: Options,
): DefinitionResult {
  if (!isObject(input)) return checkDefinition(input, { keyless: false, allowPrivateUrls });
  const refused = [...deliveryProblems(input), ...countProblems(input)];
  const checked = checkDefinition(withDefaults(input, retentionDays), { keyless: false, allowPrivateUrls });
  if (checked.ok && refused.length === 0) return checked;
  return { ok: false, violations: [...refused, ...(checked.ok ? [] : checked.violations)] };
}

/** Gives fields without one an id, made of their label, and a type; options as `withWholeOptions` does. */
export function withFieldIds(fields: unknown): unknown {
  // More are refused, with ids or without.
  if (!Array.isArray(fields) || fields.length > formLimits.fields) return fields;
  const taken = new Set(fields.flatMap((field) => (isObject(field) && isGiven(field.id) ? [field.id] : [])));
  return withWholeOptions(fields).map((field: unknown) => {
    if (!isObject(field)) return field;
    const { id, type, ...rest } = field;
    if (isGiven(id)) return { id, type: isGiven(type) ? type : 'text', ...rest };
    if (typeof rest.label !== 'string') return { type: isGiven(type) ? type : 'text', ...rest };
    const made = idOf(rest.label, taken);
    taken.add(made);
    return { id: made, type: isGiven(type) ? type : 'text', ...rest };
  });
}

/** Fields with options that are texts: each is its label and value. */
export function withWholeOptions(fields: unknown[]): unknown[] {
  const whole = (option: unknown) => (typeof option === 'string' ? { value: option, label: option } : option);
  return fields.map((field) => {
    const options = isObject(field) ? field.options : undefined;
    return isObject(field) && Array.isArray(options) ? { ...field, options: options.map(whole) } : field;
  });
}

/** An empty text stands for none in messages. */
function isGiven(value: unknown): boolean {
  return value !== undefined && value !== '';
}

/** `Which date suits?` is `which_date_suits`; a label without Latin letters is `question`. */
export function idOf(label: string, taken: ReadonlySet<unknown>): string {
  const words =
    label
      .slice(0, formLimits.label)
      .normalize('NFKD')
      .replace(/\p{M}/gu, '')
      .toLowerCase()
      .match(/[a-z0-9]+/g) ?? [];
  const named = words.join('_').slice(0, MAX_ID).replace(/_$/, '');
  const first = /^[a-z]/.test(named) ? named : `question${named === '' ? '' : `_${named}`}`.slice(0, MAX_ID);
  for (let n = 1; ; n += 1) {
    const id = n === 1 ? first : `${first}_${n}`;
    if (!taken.has(id)) return id;
  }
}

/** Leaves room for a number behind it. */
const MAX_ID = 60;

function withDefaults(input: Questions, retentionDays: number | undefined): Questions {
  const { name, slug, fields, settings, delivery: _, ...rest } = input;
  const asked = withFieldIds(fields);
  const own = isObject(settings) ? settings : {};
  return {
    name: isGiven(name) ? name : nameOf(asked),
    slug: isGiven(slug) ? slug : 'questions',
    ...rest,
    fields: asked,
    delivery: { type: 'email' },
    settings:
      settings === undefined || isObject(settings)
        ? { ...own, retentionDays: retentionDays ?? own.retentionDays ?? DEFAULT_RETENTION_DAYS }
        : settings,
  };
}

/** A page with one question has it as its title. */
function nameOf(fields: unknown): string {
  const [first, ...others] = Array.isArray(fields) ? fields : [];
  const { label } = isObject(first) ? first : {};
  return others.length === 0 && typeof label === 'string' && label !== '' ? label : 'Questions';
}

function deliveryProblems({ delivery }: Questions): Violation[] {
  if (delivery === undefined) return [];
  const message =
    'Questions of a session have no delivery: its answers are read by the session, or by webhooks';
  return [{ path: 'delivery', code: 'unrecognized_keys', message }];
}

function countProblems({ fields }: Questions): Violation[] {
  if (!Array.isArray(fields) || fields.length <= MAX_QUESTIONS) return [];
  const message = `Expected at most ${MAX_QUESTIONS} fields`;
  return [{ path: 'fields', code: 'too_big', message }];
}

const DEFAULT_RETENTION_DAYS = 30;

type Questions = Record<string, unknown>;

type Options = { retentionDays?: number | undefined; allowPrivateUrls: boolean };
