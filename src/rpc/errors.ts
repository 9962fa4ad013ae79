import { Code, ConnectError } from '@connectrpc/connect';
import { FailureSchema, type NextCall, Reason } from '../../gen/forms/v1/errors_pb.js';
import { isRetryable, nextCallAfter } from '../domain/errors/next-call.ts';
import { violationToMessage } from '../domain/errors/violation-message.ts';
import { summarize, type Violation } from '../domain/errors/violations.ts';
import { detailsOf } from './failure-details.ts';

/**
 * There is no such thing, or it belongs to another project: the message is the same.
 *
 * `what` is the thing's name in words, such as `form`.
 */
export function notFound(what: string): ConnectError {
  return failed(Reason.NOT_FOUND, `There is no such ${what}`);
}

/** The request can be read but does not fit. Paths are those of the request's fields: `definition.fields[0].id`. */
export function invalid(violations: Violation[]): ConnectError {
  return failed(Reason.INVALID, summarize(violations), { violations });
}

/** Any other failure. The reason decides the code; `message` is for people and holds no secrets. */
export function failed(reason: FailureReason, message: string, facts: FailureFacts = {}): ConnectError {
  const { code = codes[reason], violations = [], submissionId = '', requiredScope = '' } = facts;
  const retryable = isRetryable(reason);
  const { retryAfter = retryable ? SOON_SECONDS : undefined, nextCall = nextCallAfter(reason, facts) } =
    facts;
  const failure = {
    reason,
    violations: violations.map(violationToMessage),
    submissionId,
    requiredScope,
    ...(retryAfter !== undefined && { retryAfter: { seconds: BigInt(retryAfter), nanos: 0 } }),
    retryable,
    nextCall,
  };
  const error = new ConnectError(message, code, undefined, detailsOf(failure), facts.cause);
  if (retryAfter !== undefined) error.metadata.set('retry-after', String(retryAfter));
  const challenge = challengeOf(reason, requiredScope);
  if (challenge !== undefined) error.metadata.set('www-authenticate', challenge);
  return error;
}

/** The same error with the details, which those that a protocol or a transport makes lack. */
export function withFailure(error: ConnectError): ConnectError {
  if (error.details.length > 0) return error;
  const { rawMessage, code, metadata, cause } = error;
  const complete = failed(reasons[code] ?? Reason.INTERNAL, rawMessage, { code, cause });
  for (const [name, value] of metadata) complete.metadata.set(name, value);
  return complete;
}

/** Why a call failed, as REST names it: `rate_limited`. */
export function reasonNameOf(error: ConnectError): string {
  const [failure] = error.findDetails(FailureSchema);
  return Reason[failure?.reason ?? Reason.INTERNAL]?.toLowerCase() ?? 'internal';
}

/** The bytes are no message of the RPC. */
export function unreadable(cause?: unknown): ConnectError {
  return failed(Reason.BAD_REQUEST, "The message can't be read", { cause });
}

/** When to try again where nothing more is known. */
const SOON_SECONDS = 1;

/** The reasons of what is found in a call before a service sees it. */
const reasons: Partial<Record<Code, FailureReason>> = {
  [Code.InvalidArgument]: Reason.BAD_REQUEST,
  [Code.OutOfRange]: Reason.BAD_REQUEST,
  [Code.Canceled]: Reason.BAD_REQUEST,
  [Code.Unimplemented]: Reason.MEDIA_TYPE,
  [Code.ResourceExhausted]: Reason.TOO_LARGE,
  [Code.DeadlineExceeded]: Reason.UNAVAILABLE,
  [Code.Unavailable]: Reason.UNAVAILABLE,
};

/** What a failure to identify the caller says in `WWW-Authenticate` (RFC 6750, section 3). */
function challengeOf(reason: FailureReason, scope: string): string | undefined {
  if (reason === Reason.MISSING_KEY) return 'Bearer';
  if (reason === Reason.INVALID_KEY) return 'Bearer error="invalid_token"';
  if (reason !== Reason.INSUFFICIENT_SCOPE) return undefined;
  return `Bearer error="insufficient_scope", scope="${scope}"`;
}

/** The code of each reason, as `errors.proto` promises. */
const codes: Record<FailureReason, Code> = {
  [Reason.BAD_REQUEST]: Code.InvalidArgument,
  [Reason.MISSING_KEY]: Code.Unauthenticated,
  [Reason.INVALID_KEY]: Code.Unauthenticated,
  [Reason.INSUFFICIENT_SCOPE]: Code.PermissionDenied,
  [Reason.INVALID_TOKEN]: Code.Unauthenticated,
  [Reason.TOKEN_USED]: Code.Unauthenticated,
  [Reason.ORIGIN_NOT_ALLOWED]: Code.PermissionDenied,
  [Reason.NOT_FOUND]: Code.NotFound,
  [Reason.METHOD]: Code.NotFound,
  [Reason.CONFLICT]: Code.FailedPrecondition,
  [Reason.EXPIRED]: Code.FailedPrecondition,
  [Reason.CLOSED]: Code.FailedPrecondition,
  [Reason.ARCHIVED]: Code.FailedPrecondition,
  [Reason.CANCELLED]: Code.FailedPrecondition,
  [Reason.DELETED]: Code.FailedPrecondition,
  [Reason.TOO_LARGE]: Code.ResourceExhausted,
  [Reason.MEDIA_TYPE]: Code.InvalidArgument,
  [Reason.INVALID]: Code.InvalidArgument,
  [Reason.RATE_LIMITED]: Code.ResourceExhausted,
  [Reason.INTERNAL]: Code.Internal,
  [Reason.UNAVAILABLE]: Code.Unavailable,
};

export type FailureReason = Exclude<Reason, Reason.UNSPECIFIED>;

export type FailureFacts = {
  violations?: Violation[];
  /** The submission that a session already has. */
  submissionId?: string;
  /** The scope that the key lacks. */
  requiredScope?: string;
  /** When to try again, in whole seconds from now. */
  retryAfter?: number;
  /** Instead of the one that the other facts imply. */
  nextCall?: NextCall;
  /** Instead of the reason's own code: `AlreadyExists` for idempotency keys. */
  code?: Code;
  /** Kept for the log; never leaves the process. */
  cause?: unknown;
};
