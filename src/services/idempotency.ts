import { Code, ConnectError, type HandlerContext } from '@connectrpc/connect';
import { NextCall, Reason } from '../../gen/headlessforms/v1/errors_pb.js';
import { networkOf } from '../domain/addresses/ip-address.ts';
import { failed, invalid } from '../domain/errors/failure.ts';
import { jsonProblems, textProblem } from '../domain/json/json-problems.ts';
import { fingerprint } from '../domain/json/json-text.ts';
import { idempotencyKeyLength } from '../domain/limits/limits.ts';
import { pseudonymOf } from '../domain/secrets/secret-key.ts';
import { callerIfAny, clientAddressOf } from '../rpc/context.ts';
import type { Transaction } from '../store/database/database.ts';
import { findIdempotencyKey, insertIdempotencyKey } from '../store/idempotency-keys.ts';
import type { ServiceContext } from './context.ts';
import { badParameter } from './request-values.ts';

/**
 * The idempotency key of a request, with a digest of `content`, which is what makes two requests the
 * same: by the names of the REST body, as the caller gave it. Undefined without a key.
 *
 * Throws `INVALID_ARGUMENT` for a text that can't be a key, and for content that JSON can't hold.
 */
export function readIdempotency(key: string, content: Record<string, unknown>): Idempotency | undefined {
  if (key === '') return undefined;
  if (key.length > idempotencyKeyLength.max || textProblem(key) !== undefined) {
    throw badParameter(
      'idempotency_key',
      'invalid_string',
      `Expected 1 to ${idempotencyKeyLength.max} characters`,
    );
  }
  const problems = Object.entries(content).flatMap(([name, value]) => jsonProblems(value, name));
  if (problems.length > 0) throw invalid(problems);
  return { key, fingerprint: fingerprint(content) };
}

/**
 * As callers without an API key have it: a stranger may have guessed the key of another's request, and with other
 * content it is another key.
 */
export function withinContent({ key, fingerprint: content }: Idempotency): Idempotency {
  return { key: `content:${fingerprint([key, content])}`, fingerprint: content };
}

/**
 * Does the work of a request, or gives again what the first request with its key made.
 *
 * That holds also where `work` refuses the request by now: the form may have been closed, or filled, by
 * the very call that is repeated because its answer was lost. Throws `ALREADY_EXISTS` if the first
 * request was another one.
 */
export async function replayAfterRefusal<T>(
  idempotency: Idempotency | undefined,
  work: () => Promise<T>,
  findFirst: (key: string) => Promise<First<T> | null>,
): Promise<T> {
  try {
    return await work();
  } catch (refusal) {
    if (idempotency === undefined || !(refusal instanceof ConnectError)) throw refusal;
    const first = await findFirst(idempotency.key);
    if (first === null) throw refusal;
    return sameRequest(idempotency, first);
  }
}

/** What the first request with the key made. Throws `ALREADY_EXISTS` if that was another request. */
export function sameRequest<T>(idempotency: Idempotency | undefined, first: First<T>): T {
  if (first.fingerprint === (idempotency?.fingerprint ?? null)) return first.made;
  throw failed(Reason.CONFLICT, 'The idempotency key was used for another request', {
    code: Code.AlreadyExists,
    nextCall: NextCall.CORRECTED,
  });
}

/**
 * Makes what a request asks for, or gives again what the first request with its key made, for 24 hours. A key
 * counts for one API key, or for one client address without any, and for one RPC.
 *
 * `make` calls `record` in the transaction that stores the thing, before it takes other locks if it can. `again`
 * answers a repeated request; it is asked first, so that also a request is repeated that would be refused by now.
 * Throws `ALREADY_EXISTS` if the first request was another one.
 */
export async function replayFirst<T>(
  context: ServiceContext,
  call: HandlerContext,
  { key, content, again, make }: Making<T>,
): Promise<T> {
  const idempotency = readIdempotency(key, content);
  if (idempotency === undefined) return make(async () => undefined);
  const id = idOf(context, call, idempotency);
  const repeat = async () => {
    const first = await findIdempotencyKey(context.database, id);
    if (first === null) return undefined;
    const { requestFingerprint, madeId, secret } = first;
    const made = sameRequest(idempotency, { made: madeId, fingerprint: requestFingerprint });
    return { reply: await again({ id: made, secret: secret === null ? '' : context.secrets.open(secret) }) };
  };
  const before = await repeat();
  if (before !== undefined) return before.reply;
  try {
    return await make(async (tx, { id: madeId, secret: shown }) => {
      const secret = shown === '' ? null : context.secrets.seal(shown);
      const made = { id, requestFingerprint: idempotency.fingerprint, madeId, secret };
      if (!(await insertIdempotencyKey(tx, made))) throw new MadeMeanwhile();
    });
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
class MadeMeanwhile extends Error {}

/** Stands for a secret in the content that makes two requests the same: no digest of the secret itself is stored. */
export function secretInContent({ secretKey }: ServiceContext, secret: string | undefined): string | null {
  return secret === undefined || secret === '' ? null : pseudonymOf(secretKey, 'idempotency-secret', secret);
}

/** What calls without a key make is kept apart by the address: its replies hold secrets, too. */
function idOf({ secretKey }: ServiceContext, call: HandlerContext, { key }: Idempotency): string {
  const keyId = callerIfAny(call)?.keyId;
  const owner = keyId ?? pseudonymOf(secretKey, 'idempotency', networkOf(clientAddressOf(call)));
  return fingerprint([owner, call.method.name, key]);
}

export type Idempotency = { key: string; fingerprint: string };

/** What the first request with a key made, and the fingerprint of that request. */
export type First<T> = { made: T; fingerprint: string | null };

/** `secret` is what the reply shows once; empty if it shows nothing. */
type Made = { id: string; secret: string };

type Making<T> = {
  /** As the caller gave it; empty: the request is not repeatable. */
  key: string;
  /**
   * What makes two requests the same, by the names of the REST body; without defaults, so that a request can be repeated
   * where an upgrade has added some.
   */
  content: Record<string, unknown>;
  again: (first: Made) => Promise<T>;
  make: (record: (tx: Transaction, made: Made) => Promise<void>) => Promise<T>;
};
