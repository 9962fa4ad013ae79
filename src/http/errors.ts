import { Code, ConnectError } from '@connectrpc/connect';
import { FailureSchema, type NextCall, Reason, ReasonSchema } from '../../gen/forms/v1/errors_pb.js';
import { isRetryable, nextCallAfter } from '../domain/errors/next-call.ts';
import { withReceived } from '../domain/errors/received.ts';
import { violationFromMessage } from '../domain/errors/violation-message.ts';
import { summarize } from '../domain/errors/violations.ts';
import { passedBack } from './call.ts';
import { type NextCallName, nextCallNamed, nextInWords } from './next-call.ts';
import { restPathOf } from './rest-path.ts';

/** The documented table of errors: the status of each reason. */
const statuses = {
  bad_request: 400,
  missing_key: 401,
  invalid_key: 401,
  insufficient_scope: 401,
  invalid_token: 401,
  token_used: 401,
  origin_not_allowed: 401,
  not_found: 404,
  method: 404,
  conflict: 409,
  expired: 410,
  cancelled: 410,
  closed: 410,
  archived: 410,
  deleted: 410,
  too_large: 413,
  media_type: 415,
  invalid: 422,
  rate_limited: 429,
  internal: 500,
  unavailable: 503,
} as const;

/** Every reason, in the order of the table. */
export const errorReasons = Object.keys(statuses);

/**
 * A refused or failed request, as its caller sees it: one row of the documented table of errors.
 *
 * `headers` go onto the reply; 429 and 503 always have `Retry-After`. `cause` is a fault that was not logged yet;
 * it is never sent.
 */
export class HttpError extends Error {
  readonly reason: ErrorReason;
  readonly status: number;
  readonly details: readonly ErrorDetail[];
  readonly headers: Readonly<Record<string, string>>;
  /** The submission that a session already has; empty for every other error. */
  readonly submissionId: string;
  /** Whether the same request can succeed later without any change. */
  readonly retryable: boolean;
  readonly nextCall: NextCallName;

  constructor(reason: ErrorReason, message: string, options: ErrorOptions = {}) {
    super(message, { cause: options.cause });
    this.reason = reason;
    this.status = statuses[reason];
    this.details = options.details ?? [];
    const wait = this.status === 429 || this.status === 503 ? { 'retry-after': '1' } : {};
    this.headers = { ...wait, ...options.headers };
    this.submissionId = options.submissionId ?? '';
    const number = reasonNumbers.get(reason) ?? Reason.INTERNAL;
    const { details: violations, submissionId } = this;
    this.retryable = isRetryable(number);
    this.nextCall = nextCallNamed(options.nextCall ?? nextCallAfter(number, { violations, submissionId }));
  }

  /** When to send the request again, in seconds; undefined where that does not help. */
  get retryAfter(): number | undefined {
    const seconds = Number(this.headers['retry-after']);
    return this.retryable && seconds > 0 ? seconds : undefined;
  }

  /** The documented body of the reply. */
  get body(): ErrorBody {
    const { reason, status, message, details, submissionId, retryable, retryAfter, nextCall } = this;
    return {
      error: {
        code: codeOf(status),
        message,
        details: details.map(({ path, code, message, received }) => ({
          path,
          code,
          message,
          ...(received !== undefined && { received }),
        })),
        reason,
        ...(submissionId !== '' && { submission_id: submissionId }),
        retryable,
        ...(retryAfter !== undefined && { retry_after: retryAfter }),
        next_call: nextCall,
        next: nextInWords[nextCall],
      },
    };
  }
}

/**
 * The error of a body that can be read but does not fit, or of a query (`bad_request`), with all problems and what
 * came of `input` at their places.
 */
export function contentError(
  details: readonly ErrorDetail[],
  input: unknown,
  reason: ErrorReason = 'invalid',
): HttpError {
  return new HttpError(reason, summarize(details), { details: withReceived(details, input) });
}

/** The error for whatever was thrown: the failure of a call, or a fault of this process. */
export function httpErrorOf(error: unknown): HttpError {
  if (error instanceof HttpError) return error;
  if (error instanceof ConnectError) return ofFailure(error);
  if (error instanceof URIError) return new HttpError('bad_request', 'The path is not correctly encoded');
  return new HttpError('internal', INTERNAL, { cause: error });
}

const INTERNAL = 'Internal error';

function ofFailure(error: ConnectError): HttpError {
  const failure = error.findDetails(FailureSchema)[0];
  const headers = headersOf(error.metadata);
  if (failure === undefined) {
    const bare = bareFailures[error.code];
    if (bare === undefined) return new HttpError('internal', INTERNAL, { headers, cause: error });
    return new HttpError(bare.reason, bare.message, { headers: { ...bare.headers, ...headers } });
  }
  const details = failure.violations.map((message) => {
    const violation = violationFromMessage(message);
    return { ...violation, path: restPathOf(violation.path) };
  });
  const message = details.length > 0 ? summarize(details) : error.rawMessage;
  const { submissionId, nextCall } = failure;
  return new HttpError(reasonOf(failure.reason), message, { details, headers, submissionId, nextCall });
}

/** The name of a failed call's reason in lower case. An unknown one, of a newer service, is `internal`. */
function reasonOf(reason: Reason): ErrorReason {
  const name = Reason[reason]?.toLowerCase() ?? '';
  return isErrorReason(name) ? name : 'internal';
}

function isErrorReason(name: string): name is ErrorReason {
  return Object.hasOwn(statuses, name);
}

/** The number of each reason in failures of RPCs. */
const reasonNumbers: ReadonlyMap<string, Reason> = new Map(
  ReasonSchema.values.map(({ localName, number }) => [localName.toLowerCase(), number]),
);

function headersOf(metadata: Headers): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const name of passedBack) {
    const value = metadata.get(name);
    if (value !== null) headers[name] = value;
  }
  return headers;
}

const unreadable: BareFailure = { reason: 'bad_request', message: "The request can't be read" };
const notAllowed: BareFailure = {
  reason: 'invalid_key',
  message: 'The call is not allowed',
  headers: { 'www-authenticate': 'Bearer error="invalid_token"' },
};
const unavailable: BareFailure = {
  reason: 'unavailable',
  message: 'The service is not available just now',
};

/** The errors for failures without a detail, which a transport or a proxy made: their messages are not for callers. */
const bareFailures: Partial<Record<Code, BareFailure>> = {
  [Code.InvalidArgument]: unreadable,
  [Code.OutOfRange]: unreadable,
  [Code.Unauthenticated]: notAllowed,
  [Code.PermissionDenied]: notAllowed,
  [Code.NotFound]: { reason: 'not_found', message: 'There is no such thing' },
  [Code.ResourceExhausted]: { reason: 'too_large', message: 'The request is too large' },
  [Code.Unavailable]: unavailable,
  [Code.DeadlineExceeded]: unavailable,
};

/** One of the contract's four codes, by the status. */
function codeOf(status: number): ErrorBody['error']['code'] {
  if (status === 401) return 'unauthorized';
  if (status === 404) return 'not_found';
  return status >= 500 ? 'internal_error' : 'validation_failed';
}

/** The finer word beside the contract's four codes. */
export type ErrorReason = keyof typeof statuses;

/** One refused value, as the contract's `error.details` lists it. */
export type ErrorDetail = { path: string; code: string; message: string; received?: string };

type ErrorBody = {
  error: {
    code: 'validation_failed' | 'unauthorized' | 'not_found' | 'internal_error';
    message: string;
    details: readonly ErrorDetail[];
    reason: ErrorReason;
    submission_id?: string;
    retryable: boolean;
    retry_after?: number;
    next_call: NextCallName;
    next: string;
  };
};

type BareFailure = { reason: ErrorReason; message: string; headers?: Record<string, string> };

type ErrorOptions = {
  details?: readonly ErrorDetail[];
  headers?: Readonly<Record<string, string>>;
  submissionId?: string;
  /** Instead of the one that the other facts imply. */
  nextCall?: NextCall;
  cause?: unknown;
};
