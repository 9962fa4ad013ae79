import { Code, ConnectError } from '@connectrpc/connect';
import { type Failure, FailureSchema } from '../../gen/forms/v1/errors_pb.js';
import {
  type RefusalBody,
  type RefusalDetail,
  type RefusalWord,
  refusalBody,
  statusOf,
  wordOf,
} from '../domain/refusal.ts';
import { passedBack } from '../http/call.ts';

/**
 * A request that is refused, as it is told to the caller: one row of the documented table of
 * errors.
 *
 * `headers` go onto the reply. `cause` is a fault that no log has yet; the caller never sees it.
 */
export class Refusal extends Error {
  readonly status: number;
  readonly reason: RefusalWord;
  readonly details: readonly RefusalDetail[];
  readonly headers: Record<string, string>;
  readonly submissionId: string;

  constructor(reason: RefusalWord, message: string, options: RefusalOptions = {}) {
    super(message, { cause: options.cause });
    this.status = statusOf[reason];
    this.reason = reason;
    this.details = options.details ?? [];
    this.headers = options.headers ?? {};
    this.submissionId = options.submissionId ?? '';
  }

  /** The documented body of the reply. */
  get body(): RefusalBody {
    return refusalBody(this);
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

function refusalOfFailure(error: ConnectError): Refusal {
  const failure = error.findDetails(FailureSchema)[0];
  const reason = failure === undefined ? (reasonOfCode[error.code] ?? 'internal') : wordOf(failure.reason);
  return new Refusal(reason, failure === undefined ? (wordsFor[reason] ?? INTERNAL) : error.rawMessage, {
    details: failure?.violations ?? [],
    headers: headersOf(reason, failure, error.metadata),
    submissionId: failure?.submissionId ?? '',
    ...(failure === undefined && reason === 'internal' ? { cause: error } : {}),
  });
}

function headersOf(
  reason: RefusalWord,
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

function challenge(reason: RefusalWord, scope = ''): string {
  if (reason === 'insufficient_scope') return `Bearer error="insufficient_scope", scope="${scope}"`;
  return reason === 'invalid_key' ? 'Bearer error="invalid_token"' : 'Bearer';
}

const challenges: ReadonlySet<RefusalWord> = new Set(['missing_key', 'invalid_key', 'insufficient_scope']);

/** What a failure without a detail means: the transport made it, or a proxy between. */
const reasonOfCode: Partial<Record<Code, RefusalWord>> = {
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
const wordsFor: Partial<Record<RefusalWord, string>> = {
  bad_request: 'The request can not be read',
  invalid_key: 'The call is not allowed',
  not_found: 'There is no such thing',
  too_large: 'The request is too large',
  unavailable: 'The service is not available just now',
};

type RefusalOptions = {
  details?: readonly RefusalDetail[];
  headers?: Record<string, string>;
  submissionId?: string;
  cause?: unknown;
};
