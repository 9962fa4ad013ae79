import { z } from 'zod';
import { type Delivery, deliverySchema } from './delivery.ts';
import { type Field, fieldSchema } from './field.ts';
import { type Settings, settingsSchema } from './settings.ts';
import type { Violation } from './violations.ts';

export type { Condition } from './condition.ts';
export type { Delivery, EmailDelivery, WebhookDelivery } from './delivery.ts';
export type { Field, FieldType, Option } from './field.ts';
export type { Settings } from './settings.ts';

/** The shape of a slug: a label, not unique. */
export const slugPattern = /^[A-Za-z0-9._~-]{1,64}$/;

/** The shape of a form definition as people send it, also for the API description. */
export const definitionSchema = z
  .strictObject({
    name: z.string().min(1).max(200).describe('Human-readable name.'),
    slug: z
      .string()
      .regex(slugPattern, 'A slug has 1 to 64 letters, digits, ".", "_", "~" and "-"')
      .describe('URL-safe label; not unique.'),
    description: z.string().max(2000).exactOptional(),
    fields: z.array(fieldSchema).min(1).max(100),
    delivery: deliverySchema,
    settings: settingsSchema.prefault({}),
  })
  .meta({ id: 'FormDefinition', description: 'A form: its fields, where submissions go, its settings.' });

/**
 * Checks a form definition and fills in every default.
 *
 * Names all problems at once and never throws, however hostile the input. The webhook secret is
 * taken out of the definition and handed back beside it. `keyless` forms, made without a key, may
 * not mail strangers and take no files; `allowPrivateUrls` is for development and tests.
 */
export function checkDefinition(_input: unknown, _options: DefinitionOptions): DefinitionResult {
  throw new Error('not there yet');
}

export type DefinitionOptions = { keyless: boolean; allowPrivateUrls: boolean };

export type DefinitionResult =
  | { ok: true; definition: FormDefinition; deliverySecret?: string }
  | { ok: false; violations: Violation[] };

/** A checked form definition with every default filled in and no secret. */
export type FormDefinition = {
  name: string;
  slug: string;
  description?: string;
  fields: Field[];
  delivery: Delivery;
  settings: Settings;
};
