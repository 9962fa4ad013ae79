import { z } from 'zod';
import type { Key } from '../../../gen/forms/v1/keys_pb.js';
import { present, seconds, timeOf, timeOrNull, timeReply } from './common.ts';

export const createKeyBody = z
  .strictObject({
    name: z.string().describe('1 to 200 characters.'),
    scopes: z.array(z.string()).describe('What it may do, such as `forms:write`; `*` is everything.'),
    project: z.string().min(1).exactOptional().describe('Absent: the caller’s own.'),
    expires_in: seconds({ minimum: 1 }).exactOptional().describe('Seconds; absent: it never expires.'),
  })
  .meta({ id: 'CreateKeyInput' });

const key = z
  .object({
    id: z.string(),
    name: z.string(),
    scopes: z.array(z.string()),
    project: z.string(),
    last4: z.string().describe('The last four characters of its secret.'),
    created_at: timeReply,
    expires_at: timeReply.nullable(),
    last_used_at: timeReply.nullable(),
  })
  .meta({ id: 'Key' });

export const keyCreatedReply = z.object({ key, secret: z.string().describe('Shown only here.') });
export const keysReply = z.object({ keys: z.array(key) });

/** A key as replies have it. */
export function keyOf(message: Key | undefined): z.input<typeof key> {
  const there = present(message);
  return {
    id: there.id,
    name: there.name,
    scopes: there.scopes,
    project: there.project,
    last4: there.last4,
    created_at: timeOf(there.createTime),
    expires_at: timeOrNull(there.expireTime),
    last_used_at: timeOrNull(there.lastUseTime),
  };
}
