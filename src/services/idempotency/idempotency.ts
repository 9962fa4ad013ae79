import { Code, ConnectError } from '@connectrpc/connect';
import { NextCall, Reason } from '../../../gen/forms/v1/errors_pb.js';
import { canonicalJson, fingerprint } from '../../domain/json/canonical.ts';
import { jsonProblems, textProblem } from '../../domain/json/well-formed.ts';
import { idempotencyKeyLength } from '../../domain/limits/limits.ts';
import { failed, invalid } from '../../rpc/errors.ts';
import { badParameter } from '../request-values.ts';

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
  try {
    return { key, fingerprint: fingerprint(content) };
  } catch {
    throw invalid(
      Object.keys(content)
        .filter((name) => !isJson(content[name]))
        .map(notJson),
    );
  }
}

/**
 * Does the work of a request, or gives again what the first request with its key made.
 *
 * That holds also where `work` refuses the request by now: the form may have been closed, or filled, by
 * the very call that is repeated because its answer was lost. Throws `ALREADY_EXISTS` if the first
 * request was another one.
 */
export async function onceByKey<T>(
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

/** Messages can hold numbers that JSON has no words for. */
function isJson(value: unknown): boolean {
  try {
    canonicalJson(value);
    return true;
  } catch {
    return false;
  }
}

function notJson(path: string) {
  return { path, code: 'custom', message: 'Expected JSON' } as const;
}

export type Idempotency = { key: string; fingerprint: string };

/** What the first request with a key made, and the fingerprint of that request. */
export type First<T> = { made: T; fingerprint: string | null };
