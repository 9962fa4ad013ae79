import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import {
  type BadRequest_FieldViolationSchema,
  BadRequestSchema,
  ErrorInfoSchema,
  RetryInfoSchema,
} from '../../../gen/google/rpc/error_details_pb.js';
import type { DefinitionChangeSchema } from '../../../gen/headlessforms/v1/changes_pb.js';
import {
  type Failure,
  FailureSchema,
  NextCall,
  Reason,
  ViolationCode,
  type Violation as ViolationMessage,
  ViolationSchema,
} from '../../../gen/headlessforms/v1/errors_pb.js';
import { atMost, summarize, type Violation, violationCodes } from './violations.ts';

/**
 * There is no such thing, or it belongs to another project: the message is the same.
 *
 * `what` is the thing's name in words, such as `form`.
 */
export function notFound(what: string): ConnectError {
  return failed(Reason.NOT_FOUND, `There is no such ${what}`, { resource: what });
}

/**
 * The request can be read but does not fit. Paths are those of the request as its sender wrote it: in a service
 * `definition.fields[0].id`, in REST `fields.0.id`.
 */
export function invalid(violations: readonly Violation[]): ConnectError {
  return failed(Reason.INVALID, summarize(violations), { violations });
}

/** The failure of a call whose key lacks a scope; `what` says what it is needed for, if not for the call itself. */
export function insufficientScope(scope: string, what = ''): ConnectError {
  const message = `The API key lacks the scope ${scope}${what === '' ? '' : `, which is needed ${what}`}`;
  return failed(Reason.INSUFFICIENT_SCOPE, message, { requiredScope: scope });
}

/** There is no room in a limit: its name, which the log and the metrics have; `retryAfter` in seconds. */
export function limited(limit: string, message: string, retryAfter: number): ConnectError {
  const error = failed(Reason.RATE_LIMITED, message, { retryAfter: Math.max(1, Math.ceil(retryAfter)) });
  limits.set(error, limit);
  return error;
}

/** The name of the limit that refused a call; undefined for other failures. */
export function limitOf(error: ConnectError): string | undefined {
  return limits.get(error);
}

const limits = new WeakMap<ConnectError, string>();

/**
 * Any other failure, of every layer. The reason decides the code; `message` is for people and holds no secrets. Of
 * violations it carries the first hundred.
 */
export function failed(reason: FailureReason, message: string, facts: FailureFacts = {}): ConnectError {
  const { cause, submissionId = '', sessionId = '', requiredScope = '' } = facts;
  const { changes = [], pageUrl = '', resource = '' } = facts;
  const violations = atMost(facts.violations ?? []);
  const [ownCode, , usualNext] = failures[reason];
  const retryable = usualNext === NextCall.SAME;
  const { code = ownCode, retryAfter = retryable ? SOON_SECONDS : undefined } = facts;
  const failure = {
    reason,
    violations: violations.map(violationToMessage),
    submissionId,
    sessionId,
    requiredScope,
    changes,
    pageUrl,
    resource,
    ...(retryAfter !== undefined && { retryAfter: { seconds: BigInt(retryAfter), nanos: 0 } }),
    retryable,
    nextCall: facts.nextCall ?? nextCallAfter(usualNext, { ...facts, violations }),
  };
  const error = new ConnectError(message, code, undefined, detailsOf(failure), cause);
  if (retryAfter !== undefined) error.metadata.set('retry-after', String(retryAfter));
  const challenge = challengeOf(reason, requiredScope);
  if (challenge !== undefined) error.metadata.set('www-authenticate', challenge);
  return error;
}

/** What an error says in its details; undefined for one that a protocol or a proxy made, or for a fault. */
export function failureOf(error: unknown): Failure | undefined {
  return error instanceof ConnectError ? error.findDetails(FailureSchema)[0] : undefined;
}

/** The same error with details, which those that a protocol or a transport makes lack. */
export function withFailure(error: ConnectError): ConnectError {
  if (error.details.length > 0) return error;
  const { rawMessage, code, metadata, cause } = error;
  const complete = failed(reasons[code] ?? Reason.INTERNAL, rawMessage, { code, cause });
  for (const [name, value] of metadata) complete.metadata.set(name, value);
  return complete;
}

/** The same error with another failure and perhaps another message; `listed` are the violations of `BadRequest`. */
export function refailed(error: ConnectError, failure: FailureFields, change: Rewording = {}): ConnectError {
  const { message = error.rawMessage, listed } = change;
  return new ConnectError(message, error.code, error.metadata, detailsOf(failure, listed), error.cause);
}

/** Why a call failed. What this service doesn't know, of a newer one, counts as a fault. */
export function reasonOf(error: unknown): FailureReason {
  const reason = failureOf(error)?.reason ?? Reason.UNSPECIFIED;
  return isKnown(reason) ? reason : Reason.INTERNAL;
}

function isKnown(reason: Reason): reason is FailureReason {
  return Object.hasOwn(failures, reason);
}

/** A reason as REST names it: `rate_limited`. */
export function nameOf(reason: FailureReason): ReasonName {
  return Reason[reason].toLowerCase() as ReasonName;
}

/**
 * What follows from each reason: the code of RPCs, the status of REST, what to call next, and a sentence for callers
 * of REST where all that is known is the code that a transport or a proxy failed with.
 *
 * An unexpected fault comes again when the call does, and what the call did before it is not known: nothing helps.
 */
export const failures: Record<FailureReason, Row> = {
  [Reason.BAD_REQUEST]: [Code.InvalidArgument, 400, NextCall.CORRECTED, "The request can't be read"],
  [Reason.MISSING_KEY]: [Code.Unauthenticated, 401, NextCall.WITH_KEY],
  [Reason.INVALID_KEY]: [Code.Unauthenticated, 401, NextCall.WITH_KEY, 'The call is not allowed'],
  [Reason.INSUFFICIENT_SCOPE]: [Code.PermissionDenied, 401, NextCall.WITH_KEY],
  [Reason.INVALID_TOKEN]: [Code.Unauthenticated, 401, NextCall.CREATE_FORM],
  [Reason.TOKEN_USED]: [Code.Unauthenticated, 401, NextCall.READ],
  [Reason.ORIGIN_NOT_ALLOWED]: [Code.PermissionDenied, 401, NextCall.NONE],
  [Reason.NOT_FOUND]: [Code.NotFound, 404, NextCall.LIST, 'There is no such thing'],
  [Reason.METHOD]: [Code.NotFound, 404, NextCall.CORRECTED],
  [Reason.CONFLICT]: [Code.FailedPrecondition, 409, NextCall.READ],
  [Reason.EXPIRED]: [Code.FailedPrecondition, 410, NextCall.CREATE_SESSION],
  [Reason.CANCELLED]: [Code.FailedPrecondition, 410, NextCall.CREATE_SESSION],
  [Reason.DECLINED]: [Code.FailedPrecondition, 410, NextCall.READ],
  [Reason.CLOSED]: [Code.FailedPrecondition, 410, NextCall.NONE],
  [Reason.ARCHIVED]: [Code.FailedPrecondition, 410, NextCall.NONE],
  [Reason.DELETED]: [Code.FailedPrecondition, 410, NextCall.NONE],
  [Reason.BREAKING_CHANGE]: [Code.FailedPrecondition, 409, NextCall.CORRECTED],
  [Reason.SIGN_IN_AGAIN]: [Code.PermissionDenied, 401, NextCall.NONE],
  [Reason.CODE_NEEDED]: [Code.Unauthenticated, 401, NextCall.NONE],
  [Reason.TOO_LARGE]: [Code.ResourceExhausted, 413, NextCall.CORRECTED, 'The request is too large'],
  [Reason.MEDIA_TYPE]: [Code.InvalidArgument, 415, NextCall.CORRECTED],
  [Reason.INVALID]: [Code.InvalidArgument, 422, NextCall.CORRECTED],
  [Reason.RATE_LIMITED]: [Code.ResourceExhausted, 429, NextCall.SAME],
  [Reason.INTERNAL]: [Code.Internal, 500, NextCall.NONE],
  [Reason.UNAVAILABLE]: [Code.Unavailable, 503, NextCall.SAME, 'The service is not available just now'],
};

/** The reasons of errors that were made before a service saw the call, by their code. */
const reasons: Partial<Record<Code, FailureReason>> = {
  [Code.InvalidArgument]: Reason.BAD_REQUEST,
  [Code.OutOfRange]: Reason.BAD_REQUEST,
  [Code.Canceled]: Reason.BAD_REQUEST,
  [Code.Unauthenticated]: Reason.INVALID_KEY,
  [Code.PermissionDenied]: Reason.INVALID_KEY,
  [Code.NotFound]: Reason.NOT_FOUND,
  [Code.Unimplemented]: Reason.MEDIA_TYPE,
  [Code.ResourceExhausted]: Reason.TOO_LARGE,
  [Code.DeadlineExceeded]: Reason.UNAVAILABLE,
  [Code.Unavailable]: Reason.UNAVAILABLE,
};

/** When to try again where nothing more is known. */
const SOON_SECONDS = 1;

function nextCallAfter(
  usual: NextCall,
  { violations = [], submissionId, sessionId }: FailureFacts,
): NextCall {
  if (violations.some(({ byPerson }) => byPerson)) return NextCall.CREATE_SESSION;
  if (sessionId) return NextCall.GET_SESSION;
  return submissionId ? NextCall.GET_SUBMISSION : usual;
}

/** What a failure to identify the caller says in `WWW-Authenticate` (RFC 6750, section 3). */
function challengeOf(reason: FailureReason, scope: string): string | undefined {
  if (reason === Reason.MISSING_KEY) return 'Bearer';
  if (reason === Reason.INVALID_KEY) return 'Bearer error="invalid_token"';
  if (reason !== Reason.INSUFFICIENT_SCOPE) return undefined;
  return `Bearer error="insufficient_scope", scope="${scope}"`;
}

/**
 * The details of an error: ours first, and the same in the standard ones of `google.rpc`, which clients read that
 * know nothing of this service.
 */
function detailsOf(failure: FailureFields, listed = failure.violations): Details {
  const { reason, submissionId, sessionId, requiredScope, retryAfter } = failure;
  const metadata = {
    ...(submissionId !== '' && { submission_id: submissionId }),
    ...(sessionId !== '' && { session_id: sessionId }),
    ...(requiredScope !== '' && { required_scope: requiredScope }),
  };
  const info = { reason: Reason[reason] ?? '', domain: DOMAIN, metadata };
  return [
    { desc: FailureSchema, value: failure },
    { desc: ErrorInfoSchema, value: info },
    ...(listed.length > 0
      ? [{ desc: BadRequestSchema, value: { fieldViolations: listed.map(fieldViolationOf) } }]
      : []),
    ...(retryAfter ? [{ desc: RetryInfoSchema, value: { retryDelay: retryAfter } }] : []),
  ];
}

/** A violation as `google.rpc.BadRequest` has it. */
export function fieldViolationOf({
  path,
  code,
  message,
}: ViolationMessage): MessageInitShape<typeof BadRequest_FieldViolationSchema> {
  return { field: path, description: message, reason: ViolationCode[code] ?? '' };
}

/** A violation as replies and failures of RPCs carry it. */
export function violationToMessage({ path, code, message, received = '' }: Violation): ViolationMessage {
  return create(ViolationSchema, { path, code: codes.get(code) ?? ViolationCode.CUSTOM, message, received });
}

/** The violation that a message carries. A code that is unknown, of a newer service, is `custom`. */
export function violationFromMessage({ path, code, message, received }: ViolationMessage): Violation {
  return { path, code: names.get(code) ?? 'custom', message, ...(received !== '' && { received }) };
}

/** The names are those of the proto in lower case. */
const names = new Map(
  violationCodes.map((name) => [ViolationCode[name.toUpperCase() as Uppercase<typeof name>], name]),
);
const codes = new Map([...names].map(([code, name]) => [name, code]));

/** What the reasons of `ErrorInfo` belong to: the package of the protos. */
const DOMAIN = 'headlessforms.v1';

/** The name of a reason in REST, finer than the contract's four codes. */
export type ReasonName = Lowercase<Exclude<keyof typeof Reason, 'UNSPECIFIED'>>;

export type FailureReason = Exclude<Reason, Reason.UNSPECIFIED>;

type Row = [code: Code, status: number, next: NextCall, sentence?: string];

export type FailureFacts = {
  violations?: readonly Violation[];
  /** The submission that a session already has, or that an idempotency key belongs to. */
  submissionId?: string;
  /** The session that an idempotency key belongs to. */
  sessionId?: string;
  /** The scope that the key lacks. */
  requiredScope?: string;
  /** What a form's `compatibility` refuses. */
  changes?: MessageInitShape<typeof DefinitionChangeSchema>[];
  /** The page that accepts the answers. */
  pageUrl?: string;
  /** What there is none of. */
  resource?: string;
  /** When to try again, in whole seconds from now. */
  retryAfter?: number;
  /** Instead of the one that the other facts imply. */
  nextCall?: NextCall;
  /** Instead of the reason's own code: `AlreadyExists` for idempotency keys. */
  code?: Code;
  /** Kept for the log; never leaves the process. */
  cause?: unknown;
};

type Rewording = { message?: string; listed?: ViolationMessage[] };

type Details = NonNullable<ConstructorParameters<typeof ConnectError>[3]>;

type FailureFields = Omit<MessageInitShape<typeof FailureSchema>, 'violations'> & {
  reason: Reason;
  violations: ViolationMessage[];
  submissionId: string;
  sessionId: string;
  requiredScope: string;
};
