import type { HandlerContext } from '@connectrpc/connect';
import { networkOf } from '../../domain/addresses/client-network.ts';
import { fingerprint } from '../../domain/json/canonical.ts';
import { pseudonymOf } from '../../domain/secrets/pseudonym.ts';
import { callerIfAny, clientAddressOf } from '../../rpc/context.ts';
import type { Transaction } from '../../store/database/database.ts';
import { findIdempotencyKey, insertIdempotencyKey } from '../../store/idempotency-keys.ts';
import type { ServiceContext } from '../context.ts';
import { type Idempotency, readIdempotency, sameRequest } from './idempotency.ts';

/**
 * Makes what a request asks for, or gives again what the first request with its key made, for 24 hours. A key
 * counts for one API key, or for one client address without any, and for one RPC.
 *
 * `make` calls `record` in the transaction that stores the thing, before it takes other locks if it can. `again`
 * answers a repeated request; it is asked first, so that also a request is repeated that would be refused by now.
 * Throws `ALREADY_EXISTS` if the first request was another one.
 */
export async function makeOnce<T>(
  context: ServiceContext,
  call: HandlerContext,
  { key, content, formerContent, again, make }: Making<T>,
): Promise<T> {
  const idempotency = readIdempotency(key, content);
  if (idempotency === undefined) return make(async () => undefined);
  const id = idOf(context, call, idempotency);
  const repeat = async () => {
    const first = await findIdempotencyKey(context.database, id);
    if (first === null) return undefined;
    const { requestFingerprint, madeId, secret } = first;
    const isFormer = formerContent !== undefined && requestFingerprint === fingerprint(formerContent);
    if (!isFormer) sameRequest(idempotency, { made: madeId, fingerprint: requestFingerprint });
    return {
      reply: await again({ id: madeId, secret: secret === null ? '' : context.secrets.open(secret) }),
    };
  };
  const before = await repeat();
  if (before !== undefined) return before.reply;
  try {
    return await make((tx, { id: madeId, secret }) =>
      record(tx, {
        id,
        requestFingerprint: idempotency.fingerprint,
        madeId,
        secret: secret === '' ? null : context.secrets.seal(secret),
      }),
    );
  } catch (error) {
    if (!(error instanceof MadeMeanwhile)) throw error;
    const meanwhile = await repeat();
    if (meanwhile === undefined) throw error;
    return meanwhile.reply;
  }
}

/**
 * What `record` throws, to roll back what a request has begun to store, where another request with its key has stored
 * the thing meanwhile.
 */
export class MadeMeanwhile extends Error {}

/** Stands for a secret in the content that makes two requests the same: no digest of the secret itself is stored. */
export function secretInContent({ secretKey }: ServiceContext, secret: string | undefined): string | null {
  return secret === undefined || secret === '' ? null : pseudonymOf(secretKey, 'idempotency-secret', secret);
}

async function record(tx: Transaction, made: Parameters<typeof insertIdempotencyKey>[1]): Promise<void> {
  if (!(await insertIdempotencyKey(tx, made))) throw new MadeMeanwhile();
}

/** What calls without a key make is kept apart by the address: its replies hold secrets, too. */
function idOf({ secretKey }: ServiceContext, call: HandlerContext, { key }: Idempotency): string {
  const keyId = callerIfAny(call)?.keyId;
  const owner = keyId ?? pseudonymOf(secretKey, 'idempotency', networkOf(clientAddressOf(call)));
  return fingerprint([owner, call.method.name, key]);
}

/** `secret` is what the reply shows once; empty if it shows nothing. */
type Made = { id: string; secret: string };

type Making<T> = {
  /** As the caller gave it; empty: the request is not repeatable. */
  key: string;
  /** What makes two requests the same, by the names of the REST body. */
  content: Record<string, unknown>;
  /** The same as an earlier version of this service took it, whose rows may still be there. */
  formerContent?: Record<string, unknown>;
  again: (first: Made) => Promise<T>;
  make: (record: (tx: Transaction, made: Made) => Promise<void>) => Promise<T>;
};
