import {
  create,
  type DescMessage,
  type DescService,
  fromBinary,
  type Message,
  toBinary,
  toJson,
} from '@bufbuild/protobuf';
import {
  Code,
  ConnectError,
  createServiceImplSpec,
  type HandlerContext,
  type ServiceImpl,
} from '@connectrpc/connect';
import { NextCall, Reason } from '../../gen/headlessforms/v1/errors_pb.js';
import { networkOf } from '../domain/addresses/ip-address.ts';
import { failed, invalid, notFound } from '../domain/errors/failure.ts';
import { isObject, type Json, type JsonObject } from '../domain/json/json.ts';
import { jsonProblems, textProblem } from '../domain/json/json-problems.ts';
import { canonicalJson, fingerprint } from '../domain/json/json-text.ts';
import { idempotencyKeyLength } from '../domain/limits/limits.ts';
import { policyOf } from '../domain/methods.ts';
import { pseudonymOf } from '../domain/secrets/secret-key.ts';
import { clientAddressOf, factsOf } from '../rpc/context.ts';
import type { Transaction } from '../store/database/database.ts';
import { findIdempotencyKey, insertIdempotencyKey } from '../store/idempotency-keys.ts';
import { findAnySession } from '../store/sessions/sessions.ts';
import type { ServiceContext } from './context.ts';
import { sessionsForm } from './forms/form-access.ts';
import { badParameter } from './request-values.ts';
import { describeSession } from './sessions/session-access.ts';

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
    // The other one may also have made this one impossible.
    if (!(error instanceof MadeMeanwhile || error instanceof ConnectError)) throw error;
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

/**
 * A service whose methods that keep their `reply`, by the table of methods, give it again when a call is repeated
 * with its idempotency key. The method says by `keepReply` what it replies, in the transaction that has the effect. A
 * session is read again, as it is then: it holds what people have answered.
 */
export function withReplays<S extends DescService>(
  context: ServiceContext,
  descriptor: S,
  implementation: ServiceImpl<S>,
): ServiceImpl<S> {
  const specs = Object.values(createServiceImplSpec(descriptor, implementation).methods);
  const replaying = specs.flatMap((spec) => {
    if (spec.kind !== 'unary' || policyOf(spec.method).keeps !== 'reply') return [];
    const { input, output } = spec.method;
    const showsSession = output.field.session !== undefined;
    const method = (request: Message, call: HandlerContext) => {
      if (!('idempotencyKey' in request) || request.idempotencyKey === '') return spec.impl(request, call);
      const { key, content, sessionId } = contentOf(context, input, request);
      return replayFirst<MessageInit>(context, call, {
        key,
        content,
        async again({ id, secret }) {
          const session = id === '' ? null : await findAnySession(context.database, id);
          // What was erased is not shown again.
          if (id !== '' && session === null) throw notFound('session');
          if (!showsSession || session === null) return fromBinary(output, Buffer.from(secret, 'base64'));
          const form = await sessionsForm(context.forms, session.formId);
          return create(output, { session: await describeSession(context, form, session) });
        },
        async make(record) {
          keepers.set(call, (tx, reply) => {
            const whole = toBinary(output, create(output, reply));
            const secret = showsSession ? '' : Buffer.from(whole).toString('base64');
            return record(tx, { id: sessionId, secret });
          });
          return spec.impl(request, call);
        },
      });
    };
    return [[spec.method.localName, method] as const];
  });
  return { ...implementation, ...Object.fromEntries(replaying) };
}

/**
 * Returns the reply of a call, and keeps it where the call has an idempotency key: sealed, since it may show secrets.
 * Called last in the transaction that has the effect.
 */
export async function keepReply<T extends MessageInit>(
  tx: Transaction,
  call: HandlerContext,
  reply: T,
): Promise<T> {
  await keepers.get(call)?.(tx, reply);
  return reply;
}

const keepers = new WeakMap<HandlerContext, (tx: Transaction, reply: MessageInit) => Promise<void>>();

/**
 * The key of a request, a digest of all else, and the session that it names, if any. The digest is keyed: requests hold
 * secrets, and no digest of these is stored.
 */
function contentOf({ secretKey }: ServiceContext, schema: DescMessage, request: Message) {
  const { idempotencyKey = '', ...content } = jsonOf(schema, request);
  const digest = pseudonymOf(secretKey, 'idempotency-request', canonicalJson(content));
  return { key: textOf(idempotencyKey), content: { request: digest }, sessionId: textOf(content.sessionId) };
}

function textOf(value: Json | undefined): string {
  return typeof value === 'string' ? value : '';
}

function jsonOf(schema: DescMessage, request: Message): JsonObject {
  try {
    const json = toJson(schema, request);
    return isObject(json) ? json : {};
  } catch {
    throw invalid([{ path: '', code: 'custom', message: 'Expected values that JSON can hold' }]);
  }
}

/** Stands for a secret in the content that makes two requests the same: no digest of the secret itself is stored. */
export function secretInContent({ secretKey }: ServiceContext, secret: string | undefined): string | null {
  return secret === undefined || secret === '' ? null : pseudonymOf(secretKey, 'idempotency-secret', secret);
}

/** What calls without a key make is kept apart by the address: its replies hold secrets, too. */
function idOf({ secretKey }: ServiceContext, call: HandlerContext, { key }: Idempotency): string {
  const { caller, owner } = factsOf(call);
  const who =
    caller?.keyId ??
    pseudonymOf(secretKey, 'idempotency', owner?.address ?? networkOf(clientAddressOf(call)));
  return fingerprint([who, call.method.name, key]);
}

type MessageInit = Record<string, unknown>;

export type Idempotency = { key: string; fingerprint: string };

/** What the first request with a key made, and the fingerprint of that request. */
export type First<T> = { made: T; fingerprint: string | null };

/** `secret` is what the reply shows once; empty if it shows nothing. */
type Made = { id: string; secret: string };

type Making<T> = {
  /** As the caller gave it; empty: the request is not repeatable. */
  key: string;
  /**
   * What makes two requests the same, by the names of the REST body; without defaults, so that a request can be
   * repeated where an upgrade has added some.
   */
  content: Record<string, unknown>;
  again: (first: Made) => Promise<T>;
  make: (record: (tx: Transaction, made: Made) => Promise<void>) => Promise<T>;
};
