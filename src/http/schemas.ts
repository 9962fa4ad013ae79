import type { IncomingMessage } from 'node:http';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { z } from 'zod';
import { Reason } from '../../gen/headlessforms/v1/errors_pb.js';
import { AnswersSchemaFormat } from '../../gen/headlessforms/v1/forms_pb.js';
import { type SchemaFormatName, schemaFormats } from '../domain/contracts/generate.ts';
import { RECEIVER_PATTERN } from '../domain/definition/delivery.ts';
import { enumValue } from '../domain/enums.ts';
import { failed } from '../domain/errors/failure.ts';
import { kindOf, violationsOf } from '../domain/errors/violations.ts';
import { isObject, type JsonObject } from '../domain/json/json.ts';
import { optional } from '../domain/json/optional.ts';
import { idempotencyKeyLength, MAX_URL_LENGTH, pageSizes, secretLength } from '../domain/limits/limits.ts';

/** An object of any JSON, such as answers. The service checks its content. */
export const jsonObject = z
  .custom<JsonObject>(isObject, {
    params: { code: 'invalid_type' },
    error: ({ input }) => (input === undefined ? 'Required' : `Expected object, received ${kindOf(input)}`),
  })
  .meta({ type: 'object', additionalProperties: true });

/** The same as an argument of a tool. */
export const objectArgument = z
  .custom<JsonObject>(isObject, { params: { code: 'invalid_type' }, error: 'Expected object' })
  .meta({ type: 'object', additionalProperties: true });

/** An address on the web. The service checks it; the API description says what it checks. */
export const httpsUrl = z
  .string()
  .meta({ format: 'uri', pattern: '^https://', minLength: 1, maxLength: MAX_URL_LENGTH });

/** Where events are sent. */
export const receiverUrl = z
  .string()
  .meta({ format: 'uri', pattern: RECEIVER_PATTERN, minLength: 1, maxLength: MAX_URL_LENGTH })
  .describe('An HTTPS URL of a public host, without credentials.');

/** The service checks it, with all else that is wrong; an empty one would be none to it. */
export const signingSecret = z
  .string()
  .min(1)
  .meta({ minLength: secretLength.min, maxLength: secretLength.max })
  .describe('The signing secret; absent: one is made and shown in the reply.');

/** What the bodies of deliveries are made by. */
export const template = jsonObject.describe(
  'What the body of each delivery is made by, up to 8 KiB: in its strings `{{data.answers.email}}` names a value of the event.',
);

/** Of a route whose replies have an `ETag`. */
export const ifNoneMatch = {
  'If-None-Match': optional(z.string(), 'The `ETag` of a reply before.'),
};

/** `true` or `false` in a query; absent: false. */
export const flag = (description: string) =>
  z
    .enum(['true', 'false'])
    .transform((text) => text === 'true')
    .default(false)
    .describe(description);

/** The query of a list: the size of a page, and where it begins. */
export const pageQuery = pageQueryWith(pageSizes.default);

/** The same for lists that had no pages in the interface: a client that asks for none gets the largest. */
export const largePageQuery = pageQueryWith(pageSizes.max);

function pageQueryWith(unset: number) {
  return z.object({
    limit: z
      .string()
      .regex(/^0*[1-9]\d*$/, 'Expected a whole number from 1')
      .transform((text) => Math.min(Number(text), pageSizes.max))
      .exactOptional()
      .meta({
        type: 'integer',
        minimum: 1,
        description: `How many to return, default ${unset}; above ${pageSizes.max} reads as ${pageSizes.max}.`,
      }),
    cursor: optional(z.string().min(1), 'The `next_cursor` of the page before.'),
  });
}

/** An instant in a query or a body. */
export const timeInput = z
  .union([z.iso.datetime({ offset: true }), z.iso.date()], {
    error: ({ input }) =>
      input === undefined ? 'Required' : 'Expected ISO 8601, as in 2026-11-21T08:00:00Z',
  })
  .transform((text) => timestampFromDate(new Date(text)))
  .meta({ type: 'string', description: 'ISO 8601 with offset, or a day, which begins at midnight UTC.' });

export const nextCursor = z.string().nullable().describe('Where the next page begins; null on the last.');

/** A whole number of seconds in a body. The service checks its range. */
export const seconds = ({ min, max, ...rest }: { min: number; max?: number; default?: number }) =>
  z
    .int()
    .meta({ minimum: min, ...(max !== undefined && { maximum: max }), ...rest })
    .describe('Seconds.');

/** The header that makes a request safe to repeat. */
export const idempotencyKey = z
  .string()
  .min(idempotencyKeyLength.min)
  .max(idempotencyKeyLength.max)
  .describe('The same key with the same content gives the first answer again.');

/** The `Idempotency-Key` of a request; empty without one. Throws a failure if it is no key. */
export function idempotencyKeyOf({ headers }: IncomingMessage): string {
  const header = headers['idempotency-key'];
  if (header === undefined) return '';
  const key = idempotencyKey.safeParse(header);
  if (key.success) return key.data;
  const violations = violationsOf(key.error, header, 'Idempotency-Key');
  throw failed(Reason.BAD_REQUEST, `Idempotency-Key: Expected 1 to ${idempotencyKeyLength.max} characters`, {
    violations,
  });
}

/** What may be generated of the answers to a form. */
export const schemaFormat = z
  .enum(Object.keys(schemaFormats) as SchemaFormatName[])
  .or(z.literal('json-schema').transform(() => 'json_schema' as const))
  .transform((name) => enumValue(AnswersSchemaFormat, name));

export const schemaTypes = Object.values(schemaFormats).map(({ mediaType }) => mediaType.replace(/;.*/, ''));
