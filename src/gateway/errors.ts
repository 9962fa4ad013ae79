import { Code, ConnectError } from '@connectrpc/connect';
import { type Failure, FailureSchema, Reason } from '../../gen/forms/v1/errors_pb.js';

/**
 * A request that is refused, as it is told to the caller: one row of the documented table of
 * errors.
 *
 * `headers` go onto the reply. `cause` is a fault that no log has yet; the caller never sees it.
 */
export class Refusal extends Error {
  readonly status: number;
  readonly reason: ReasonName;
  readonly details: readonly Detail[];
  readonly headers: Record<string, string>;
  readonly submissionId: string;

  constructor(reason: ReasonName, message: string, options: RefusalOptions = {}) {
    super(message, { cause: options.cause });
    this.status = statuses[reason];
    this.reason = reason;
    this.details = options.details ?? [];
    this.headers = options.headers ?? {};
    this.submissionId = options.submissionId ?? '';
  }

  /** The documented body of the reply. */
  get body(): ErrorBody {
    const { message, details, reason } = this;
    return {
      error: {
        code: codeOf(this.status),
        message,
        details,
        reason,
        ...(this.submissionId === '' ? {} : { submission_id: this.submissionId }),
      },
    };
  }
}

/** The refusal that stands for whatever a route threw: a service's failure, or a fault of our own. */
export function refusalOf(error: unknown): Refusal {
  if (error instanceof Refusal) return error;
  if (error instanceof ConnectError) return refusalOfFailure(error);
  if (error instanceof URIError) return new Refusal('bad_request', 'The path is not correctly encoded');
  return new Refusal('internal', INTERNAL, { cause: error });
}

const INTERNAL = 'Internal error';

/** The status of each reason. */
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
  closed: 410,
  archived: 410,
  too_large: 413,
  media_type: 415,
  invalid: 422,
  rate_limited: 429,
  internal: 500,
  unavailable: 503,
} as const;

/** One of the contract's four words, by the status. */
function codeOf(status: number): ErrorBody['error']['code'] {
  if (status === 401) return 'unauthorized';
  if (status === 404) return 'not_found';
  return status >= 500 ? 'internal_error' : 'validation_failed';
}

function refusalOfFailure(error: ConnectError): Refusal {
  const failure = error.findDetails(FailureSchema)[0];
  const reason = (failure && reasons[failure.reason]) ?? reasonOfCode[error.code] ?? 'internal';
  return new Refusal(reason, failure === undefined ? (wordsFor[reason] ?? INTERNAL) : error.rawMessage, {
    details: failure?.violations.map(({ path, code, message }) => ({ path, code, message })) ?? [],
    headers: headersOf(reason, failure, error.metadata),
    submissionId: failure?.submissionId ?? '',
    ...(failure === undefined && reason === 'internal' ? { cause: error } : {}),
  });
}

function headersOf(
  reason: ReasonName,
  failure: Failure | undefined,
  metadata: Headers,
): Record<string, string> {
  const headers: Record<string, string> = {};
  if (challenges.has(reason)) headers['www-authenticate'] = challenge(reason, failure?.requiredScope);
  if (failure?.retryAfter) headers['retry-after'] = String(Number(failure.retryAfter.seconds) || 1);
  else if (reason === 'unavailable' || reason === 'rate_limited') headers['retry-after'] = '1';
  for (const name of passedBack) {
    const value = metadata.get(name);
    if (value !== null) headers[name] = value;
  }
  return headers;
}

/** The response headers of an RPC that go on to the HTTP reply. */
export const passedBack = ['ratelimit', 'ratelimit-policy', 'retry-after', 'www-authenticate'] as const;

function challenge(reason: ReasonName, scope = ''): string {
  if (reason === 'insufficient_scope') return `Bearer error="insufficient_scope", scope="${scope}"`;
  return reason === 'invalid_key' ? 'Bearer error="invalid_token"' : 'Bearer';
}

const challenges: ReadonlySet<ReasonName> = new Set(['missing_key', 'invalid_key', 'insufficient_scope']);

/** What a failure without a detail means: the transport made it, or a proxy between. */
const reasonOfCode: Partial<Record<Code, ReasonName>> = {
  [Code.InvalidArgument]: 'bad_request',
  [Code.OutOfRange]: 'bad_request',
  [Code.Unauthenticated]: 'invalid_key',
  [Code.PermissionDenied]: 'invalid_key',
  [Code.NotFound]: 'not_found',
  [Code.ResourceExhausted]: 'too_large',
  [Code.Unavailable]: 'unavailable',
  [Code.DeadlineExceeded]: 'unavailable',
};

/** Said in place of a message that is not meant for callers. */
const wordsFor: Partial<Record<ReasonName, string>> = {
  bad_request: 'The request can not be read',
  invalid_key: 'The call is not allowed',
  not_found: 'There is no such thing',
  too_large: 'The request is too large',
  unavailable: 'The service is not available just now',
};

const reasons: Partial<Record<Reason, ReasonName>> = {
  [Reason.BAD_REQUEST]: 'bad_request',
  [Reason.MISSING_KEY]: 'missing_key',
  [Reason.INVALID_KEY]: 'invalid_key',
  [Reason.INSUFFICIENT_SCOPE]: 'insufficient_scope',
  [Reason.INVALID_TOKEN]: 'invalid_token',
  [Reason.TOKEN_USED]: 'token_used',
  [Reason.ORIGIN_NOT_ALLOWED]: 'origin_not_allowed',
  [Reason.NOT_FOUND]: 'not_found',
  [Reason.METHOD]: 'method',
  [Reason.CONFLICT]: 'conflict',
  [Reason.EXPIRED]: 'expired',
  [Reason.CLOSED]: 'closed',
  [Reason.ARCHIVED]: 'archived',
  [Reason.TOO_LARGE]: 'too_large',
  [Reason.MEDIA_TYPE]: 'media_type',
  [Reason.INVALID]: 'invalid',
  [Reason.RATE_LIMITED]: 'rate_limited',
  [Reason.INTERNAL]: 'internal',
  [Reason.UNAVAILABLE]: 'unavailable',
};

/** The finer word beside the contract's four codes. */
export type ReasonName = keyof typeof statuses;

/** One refused value, as the contract's `error.details` lists it. */
export type Detail = { path: string; code: string; message: string };

export type ErrorBody = {
  error: {
    code: 'validation_failed' | 'unauthorized' | 'not_found' | 'internal_error';
    message: string;
    details: readonly Detail[];
    reason: ReasonName;
    submission_id?: string;
  };
};

type RefusalOptions = {
  details?: readonly Detail[];
  headers?: Record<string, string>;
  submissionId?: string;
  cause?: unknown;
};
