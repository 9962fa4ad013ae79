import { z } from 'zod';
import { KeySchema, KeysService } from '../../gen/headlessforms/v1/keys_pb.js';
import { optional } from '../domain/json/optional.ts';
import { keyLimits, pageSizes, projectPattern } from '../domain/limits/limits.ts';
import { scopes } from '../domain/scopes.ts';
import { largePageQuery, seconds } from '../http/schemas.ts';
import { shape, timeReply } from '../http/shape.ts';
import { done, listRoute, type Route, replyOf, route, tagged } from './route.ts';

const { method: rpcs } = KeysService;

/** For the API description; what is no scope is refused by the service, with all else that is wrong. */
const scopeSchema = { type: 'string', enum: scopes } as const;

const createKeyBody = z
  .strictObject({
    name: z.string().meta({ minLength: 1, maxLength: keyLimits.name }).describe('What to call it.'),
    scopes: z
      .array(z.string())
      .max(scopes.length)
      .meta({
        items: scopeSchema,
        minItems: 1,
        uniqueItems: true,
      })
      .describe('What it may do, such as `forms:write`; `*` is everything.'),
    project: z
      .string()
      .min(1)
      .exactOptional()
      .meta({ pattern: projectPattern.source, description: 'Absent: the caller’s own.' }),
    expires_in: optional(
      seconds({ min: 1, max: keyLimits.seconds }),
      'Seconds; absent: it ends with the key that makes it, or never.',
    ),
  })
  .meta({ id: 'CreateKeyInput' });

const key = shape(KeySchema, 'Key', {
  id: z.string(),
  name: z.string(),
  scopes: z.array(z.string()).meta({ items: scopeSchema }),
  project: z.string(),
  last4: z.string().describe('The last four characters of its secret.'),
  created_at: timeReply,
  expires_at: timeReply.nullable(),
  last_used_at: timeReply.nullable(),
  created_by: z.string().nullable().describe('The id of the key that made it; null if none did.'),
});

/** The routes of API keys. */
export const keyRoutes: Route[] = tagged('Keys', [
  route('post', '/v1/keys', rpcs.createKey, {
    summary: 'Make an API key',
    body: createKeyBody,
    status: 201,
    errors: [404, 409],
    ...replyOf(rpcs.createKey.output, { key, secret: z.string().describe('Shown only here.') }),
  }),
  listRoute('/v1/keys', rpcs.listKeys, {
    summary: 'List the project’s API keys, newest first',
    name: 'keys',
    query: largePageQuery,
    pageSize: pageSizes.max,
    item: key,
  }),
  route('delete', '/v1/keys/:id', rpcs.deleteKey, {
    summary: 'Revoke an API key',
    query: z.object({
      children: optional(
        z.literal('revoke'),
        'Revokes the keys, too, that it made. Without this, a key that made some that work is refused.',
      ),
    }),
    apart: ['children'],
    input: ({ query: { children } }) => ({ revokeChildren: children === 'revoke' }),
    errors: [409],
    ...done,
  }),
]);
