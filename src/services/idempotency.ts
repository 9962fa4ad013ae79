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
import { isId } from '../domain/ids.ts';
import type { JsonObject } from '../domain/json/json.ts';
import { jsonProblems, textProblem } from '../domain/json/json-problems.ts';
import { canonicalJson, fingerprint } from '../domain/json/json-text.ts';
import { idempotencyKeyLength } from '../domain/limits/limits.ts';
import { policyOf } from '../domain/methods.ts';
import { pseudonymOf } from '../domain/secrets/secret-key.ts';
import { clientAddressOf, factsOf } from '../rpc/context.ts';
import type { Transaction } from '../store/database/database.ts';
import { findIdempotencyKey, type IdempotencyKey, insertIdempotencyKey } from '../store/idempotency-keys.ts';
import type { Session } from '../store/sessions/session-table.ts';
import { findAnySession } from '../store/sessions/sessions.ts';
import type { ServiceContext } from './context.ts';
import { type PublishedForm, sessionsForm } from './forms/form-access.ts';
import { badParameter } from './request-values.ts';

/**
 * The idempotency key of a submission, with a digest of `content`: of all that its caller says, what makes two of them
 * the same. Undefined without a key.
 *
 * Throws `INVALID_ARGUMENT` for a text that can't be a key, and for content that JSON can't hold.
 */
export function readIdempotency(key: string, content: Record<string, unknown>): Idempotency | undefined {
  if (key === '') return undefined;
  checkKey(key);
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
 * The idempotency key of any other request, with the digest of all else in its message. The key counts for one API key,
 * OAuth subject, owner or, of calls without any, network, and within `scope`: the name of the RPC or what narrows it.
 * Undefined without a key.
 *
 * The digest is keyed, since requests hold secrets. It is empty for a message that JSON can't hold: what checks the
 * request names the place. Throws `INVALID_ARGUMENT` for a text that can't be a key.
 */
export function requestIdempotency(
  { secretKey }: Pick<ServiceContext, 'secretKey'>,
  call: HandlerContext,
  request: KeyedRequest,
  { scope = [call.method.name], schema = call.method.input }: { scope?: string[]; schema?: DescMessage } = {},
): Idempotency | undefined {
  const { idempotencyKey } = request;
  if (idempotencyKey === '') return undefined;
  checkKey(idempotencyKey);
  const { caller, owner } = factsOf(call);
  const who =
    caller?.keyId ??
    pseudonymOf(secretKey, 'idempotency', owner?.address ?? networkOf(clientAddressOf(call)));
  return {
    key: fingerprint([who, ...scope, idempotencyKey]),
    fingerprint: digestOf(secretKey, schema, request),
  };
}

function digestOf(secretKey: Buffer, schema: DescMessage, request: Message): string {
  try {
    const { idempotencyKey: _, ...content } = toJson(schema, request) as JsonObject;
    return fingerprint({ request: pseudonymOf(secretKey, 'idempotency-request', canonicalJson(content)) });
  } catch {
    return '';
  }
}

function checkKey(key: string): void {
  if (key.length <= idempotencyKeyLength.max && textProblem(key) === undefined) return;
  const message = `Expected 1 to ${idempotencyKeyLength.max} characters`;
  throw badParameter('idempotency_key', 'invalid_string', message);
}

/** Throws for a request that JSON can't hold: with a key it can't be stored. */
export function requireDigest({ fingerprint }: Idempotency): void {
  if (fingerprint !== '') return;
  throw invalid([{ path: '', code: 'custom', message: 'Expected values that JSON can hold' }]);
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
    const mayBeRepeated = refusal instanceof ConnectError || refusal instanceof MadeMeanwhile;
    if (idempotency === undefined || !mayBeRepeated) throw refusal;
    const first = await findFirst(idempotency.key);
    if (first === null) throw refusal;
    requireSame(idempotency, first);
    return first.made();
  }
}

/** The same for work that is not begun where there is a first request: it looks for that before, too. */
export async function replayFirst<T>(
  idempotency: Idempotency | undefined,
  work: () => Promise<T>,
  findFirst: (key: string) => Promise<First<T> | null>,
): Promise<T> {
  const first = idempotency === undefined ? null : await findFirst(idempotency.key);
  if (first === null) return replayAfterRefusal(idempotency, work, findFirst);
  requireSame(idempotency, first);
  return first.made();
}

/** Throws `ALREADY_EXISTS`, with what the key belongs to, if the first request with the key was another one. */
export function requireSame(idempotency: Idempotency | undefined, first: FirstRequest): void {
  if (first.fingerprint === (idempotency?.fingerprint ?? null)) return;
  const { sessionId = '', submissionId = '' } = first;
  throw failed(Reason.CONFLICT, 'The idempotency key was used for another request', {
    code: Code.AlreadyExists,
    sessionId,
    submissionId,
    ...(sessionId === '' && submissionId === '' && { nextCall: NextCall.WITH_OTHER_IDEMPOTENCY_KEY }),
  });
}

/**
 * Carries out a call, or gives again the reply of the first one with its idempotency key, for 24 hours. The call keeps
 * its reply by `keepReply`: sealed, since it may show secrets, or of what can be erased the id alone, by which it is
 * read again. Of a session's change that is what was not refused.
 */
export async function withKeptReply<T extends MessageInit>(
  context: ServiceContext,
  call: HandlerContext,
  { request, schema = call.method.input, about, isReadAgain, again, wasSame }: Repeatable<T>,
  work: () => Promise<T>,
): Promise<T> {
  const idempotency = requestIdempotency(context, call, request, { schema });
  if (idempotency === undefined) return work();
  const { key: id, fingerprint: requestFingerprint } = idempotency;
  const { output } = call.method;
  keepers.set(call, async (tx, reply) => {
    requireDigest(idempotency);
    const { session: _, ...rest } = reply;
    const kept = () => Buffer.from(toBinary(output, create(output, rest))).toString('base64');
    // What was refused stands nowhere else.
    const secret = isReadAgain && !Object.hasOwn(rest, 'refused') ? null : context.secrets.seal(kept());
    const isFirst = await insertIdempotencyKey(tx, { id, requestFingerprint, madeId: about, secret });
    if (!isFirst) throw new MadeMeanwhile();
  });
  return replayFirst(idempotency, work, async (key) => {
    const stored = await findIdempotencyKey(context.database, key);
    if (stored === null) return null;
    const { madeId, secret } = stored;
    return {
      fingerprint: (await wasSame(stored)) ? requestFingerprint : stored.requestFingerprint,
      ...(isId('sess', madeId) && { sessionId: madeId }),
      made: () => again(madeId, secret === null ? '' : context.secrets.open(secret)),
    };
  });
}

/**
 * What `keepReply` throws, to roll back what a request has begun to store, where another request with its key has stored
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
  { describeSession, ...former }: FormerReplies & { describeSession: DescribeSession },
): ServiceImpl<S> {
  const specs = Object.values(createServiceImplSpec(descriptor, implementation).methods);
  const replaying = specs.flatMap((spec) => {
    if (spec.kind !== 'unary' || policyOf(spec.method).keeps !== 'reply') return [];
    const { output } = spec.method;
    const isReadAgain = output.field.session !== undefined;
    const method = (request: Message, call: HandlerContext) => {
      if (!('idempotencyKey' in request)) return spec.impl(request, call);
      const keyed = request as KeyedRequest;
      const again = async (id: string, kept: string): Promise<MessageInit> => {
        const session = isId('sess', id) ? await findAnySession(context.database, id) : undefined;
        // What was erased is not shown again.
        if (session === null) throw notFound('session');
        if (session === undefined && id !== '') return former.read(call, keyed, id, kept);
        if (session === undefined || !isReadAgain) return fromBinary(output, Buffer.from(kept, 'base64'));
        const form = await sessionsForm(context.forms, session.formId);
        const { $typeName: _, ...rest } = fromBinary(output, Buffer.from(kept, 'base64'));
        return create(output, { ...rest, session: await describeSession(context, form, session) });
      };
      const about = 'sessionId' in request ? String(request.sessionId) : '';
      const wasSame = (stored: IdempotencyKey) => former.isSame(call, keyed, stored);
      const repeatable = { request: keyed, about, isReadAgain, again, wasSame };
      return withKeptReply(context, call, repeatable, async () => spec.impl(request, call));
    };
    return [[spec.method.localName, method] as const];
  });
  return { ...implementation, ...Object.fromEntries(replaying) };
}

/**
 * Returns the reply of a call, and keeps it where the call has an idempotency key. Called last in the transaction that
 * has the effect.
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

type MessageInit = Record<string, unknown>;

/** A request that may have an idempotency key. */
export type KeyedRequest = Message & { idempotencyKey: string };

export type Idempotency = { key: string; fingerprint: string };

/** The digest of the first request with a key, and what it made that a caller can read. */
type FirstRequest = { fingerprint: string | null; sessionId?: string; submissionId?: string };

/** With what a repeated request gets. */
export type First<T> = FirstRequest & { made: () => T | Promise<T> };

type Repeatable<T> = {
  request: KeyedRequest;
  /** Of the request, where it stands for those of a stream. */
  schema?: DescMessage;
  /** The id of the session or file that the reply is about; empty if there is none. */
  about: string;
  /** Whether `again` reads it, so that no reply is kept. */
  isReadAgain: boolean;
  /** The reply by what was kept: the id of what it is about, and the reply in base64. */
  again: (about: string, kept: string) => Promise<T>;
  /** Whether the version before would have taken the request for the one that it stored. */
  wasSame: (stored: IdempotencyKey) => Promise<boolean>;
};

type DescribeSession = (
  context: ServiceContext,
  form: PublishedForm,
  session: Session,
) => Promise<MessageInit>;

/** How the version before kept replies. */
export type FormerReplies = {
  /** Whether it would have taken a request for the one that is stored. */
  isSame(call: HandlerContext, request: KeyedRequest, stored: IdempotencyKey): Promise<boolean>;
  /** The reply by the id and the secret that it kept. */
  read(call: HandlerContext, request: KeyedRequest, id: string, secret: string): Promise<MessageInit>;
};
