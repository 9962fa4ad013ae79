import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { atMost, type Violation, violationsOf } from '../errors/violations.ts';
import { type Field, fieldSchema } from '../fields/field.ts';
import type { FormFacts } from '../fields/field-type.ts';
import { textUpTo } from '../fields/text.ts';
import { isObject } from '../json/json.ts';
import { jsonProblems } from '../json/json-problems.ts';
import { fingerprint } from '../json/json-text.ts';
import { optional } from '../json/optional.ts';
import { formLimits } from '../limits/limits.ts';
import { type DefinitionOptions, definitionProblems } from './definition-rules.ts';
import { type DeliveryInput, deliverySchema, type FormDelivery } from './delivery.ts';
import { normalizeField } from './field-rules.ts';
import { normalizeSettings, type Settings, settingsSchema } from './settings.ts';
import { normalizeTranslations, pageSchema, type Translations, translationsSchema } from './translations.ts';

export type { Condition } from '../conditions/condition.ts';
export type { Field } from '../fields/field.ts';
export type { DefinitionOptions } from './definition-rules.ts';
export type { EmailDelivery, FormDelivery as Delivery } from './delivery.ts';

/** The shape of a slug: a label, not unique. */
const slugPattern = /^[A-Za-z0-9._~-]{1,64}$/;

/** The shape of a form definition as people send it, also for the API description. */
export const definitionSchema = z
  .strictObject({
    name: textUpTo(formLimits.name).describe('Human-readable name.'),
    slug: z
      .string()
      .regex(slugPattern, 'A slug has 1 to 64 letters, digits, ".", "_", "~" and "-"')
      .describe('URL-safe label; not unique.'),
    description: z.string().max(formLimits.description).exactOptional(),
    fields: z.array(fieldSchema).min(1).max(formLimits.fields),
    delivery: deliverySchema,
    settings: settingsSchema.prefault({}),
    pages: optional(z.array(pageSchema).max(formLimits.pages), 'The steps of a multi-page form, in order.'),
    translations: translationsSchema.exactOptional(),
  })
  .meta({ id: 'FormDefinition', description: 'A form: its fields, where submissions go, its settings.' });

/**
 * Checks a form definition and fills in every default.
 *
 * Returns all problems at once and never throws, whatever the input. The webhook secret is taken out of the
 * definition and returned beside it. `keyless` forms, made without a key, may not email others and take no files;
 * `allowPrivateUrls` is for development and tests. A definition that was accepted once is accepted again,
 * unchanged.
 */
export function checkDefinition(input: unknown, options: DefinitionOptions): DefinitionResult {
  const unsafe = jsonProblems(input, '', { maxMembers: formLimits.members });
  if (unsafe.length > 0) return { ok: false, violations: unsafe };
  const parsed = definitionSchema.safeParse(input);
  const problems = definitionProblems(input, options);
  if (!parsed.success) {
    return { ok: false, violations: atMost([...violationsOf(parsed.error, input), ...problems]) };
  }
  const { name, slug, description, fields, delivery, settings, pages = [], translations = {} } = parsed.data;
  const definition: FormDefinition = {
    name,
    slug,
    ...(description && { description }),
    fields: fields.map((field) => normalizeField(field, options)),
    delivery: storedDelivery(delivery, options),
    settings: normalizeSettings(settings),
    ...(pages.length > 0 && { pages }),
    ...(Object.keys(translations).length > 0 && { translations: normalizeTranslations(translations) }),
  };
  const secret = delivery.type === 'webhook' ? delivery.secret : undefined;
  const checked = { definition, ...(secret !== undefined && { deliverySecret: secret }) };
  const isCurrent = () => options.current && fingerprint(definition) === fingerprint(options.current);
  const wasFine =
    problems.length > 0 && definitionProblems(input, { ...options, isInUse: true }).length === 0;
  if (problems.length === 0 || (wasFine && isCurrent())) return { ok: true, ...checked };
  return { ok: false, violations: atMost(problems), ...(wasFine && { definition }) };
}

function storedDelivery(delivery: DeliveryInput, { keptUrl = '' }: DefinitionOptions): FormDelivery {
  if (delivery.type === 'webhook') return { type: 'webhook', url: delivery.url ?? keptUrl };
  const { to = [], ...rest } = delivery;
  return to.length > 0 ? { ...rest, to } : rest;
}

export type DefinitionResult =
  | { ok: true; definition: FormDefinition; deliverySecret?: string }
  | {
      ok: false;
      violations: Violation[];
      /** What it is, if versions in use may be so: one that is published stays as it is. */
      definition?: FormDefinition;
    };

/** A checked form definition with every default filled in and no secret. */
export type FormDefinition = {
  name: string;
  slug: string;
  description?: string;
  fields: Field[];
  delivery: FormDelivery;
  settings: Settings;
  /** What the steps are called, the first one first. */
  pages?: z.output<typeof pageSchema>[];
  translations?: Translations;
};

/**
 * A checked definition without what the check fills in: the same for a definition that spells defaults out and one
 * that leaves them out, and in a later version that has more defaults.
 */
export function withoutDefaults({ fields, settings, ...rest }: FormDefinition, form: FormFacts): object {
  return {
    ...rest,
    fields: fields.map((field) => {
      const { id, type } = field;
      return { id, type, ...difference(field, normalizeField(fieldSchema.parse({ id, type }), form)) };
    }),
    settings: difference(settings, settingsSchema.parse({})),
  };
}

/** What of an object another has not, or has otherwise; of objects in it, the same. */
function difference(object: object, other: object): object {
  const known = new Map<string, unknown>(Object.entries(other));
  const entries = Object.entries(object).flatMap(([key, value]: [string, unknown]) => {
    const standard = known.get(key);
    if (isDeepStrictEqual(value, standard)) return [];
    return [[key, isObject(value) && isObject(standard) ? difference(value, standard) : value]];
  });
  return Object.fromEntries(entries);
}
