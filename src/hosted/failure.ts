import { Code, ConnectError } from '@connectrpc/connect';
import { FailureSchema, Reason, type Violation } from '../../gen/forms/v1/errors_pb.js';

/** What a page tells of anything that was thrown: the status and reason of the documented errors. */
export function failureOf(error: unknown): Failed {
  if (error instanceof Refused)
    return { ...describe(error.reason), violations: [], headers: {}, submissionId: '' };
  const connect = ConnectError.from(error, Code.Internal);
  const failure = connect.findDetails(FailureSchema)[0];
  const headers: Record<string, string> = {};
  for (const name of passedBack) {
    const value = connect.metadata.get(name);
    if (value !== null) headers[name] = value;
  }
  if (failure?.retryAfter !== undefined) headers['retry-after'] = String(failure.retryAfter.seconds || 1n);
  return {
    ...describe(failure?.reason ?? reasonsOfCodes[connect.code] ?? Reason.INTERNAL),
    violations: failure?.violations ?? [],
    headers,
    submissionId: failure?.submissionId ?? '',
  };
}

/** A post that a page refuses by itself, before any service hears of it. */
export class Refused extends Error {
  readonly reason: Reason;

  constructor(reason: Reason, message: string) {
    super(message);
    this.reason = reason;
  }
}

/** The error as the JSON of the documented interface. */
export function errorBody({ status, reason, violations, submissionId }: Failed, message: string) {
  return {
    error: {
      code: codeOf(status),
      message,
      details: violations.map(({ path, code, message }) => ({ path, code, message })),
      reason,
      ...(submissionId === '' ? {} : { submission_id: submissionId }),
    },
  };
}

/** The headers of an RPC's reply that go on to the browser. */
export const passedBack = ['ratelimit', 'ratelimit-policy', 'retry-after'] as const;

function describe(reason: Reason): { status: number; reason: string } {
  const [status, word] = reasons[reason] ?? [500, 'internal'];
  return { status, reason: word };
}

function codeOf(status: number): string {
  if (status === 401) return 'unauthorized';
  if (status === 404) return 'not_found';
  return status >= 500 ? 'internal_error' : 'validation_failed';
}

/** What a failure without a detail means: the transport made it. */
const reasonsOfCodes: Partial<Record<Code, Reason>> = {
  [Code.NotFound]: Reason.NOT_FOUND,
  [Code.InvalidArgument]: Reason.BAD_REQUEST,
  [Code.Unauthenticated]: Reason.INVALID_TOKEN,
  [Code.PermissionDenied]: Reason.INVALID_TOKEN,
  [Code.ResourceExhausted]: Reason.TOO_LARGE,
  [Code.Unavailable]: Reason.UNAVAILABLE,
  [Code.DeadlineExceeded]: Reason.UNAVAILABLE,
};

/** The status and the word of each reason that a page can meet. */
const reasons: Partial<Record<Reason, [status: number, word: string]>> = {
  [Reason.BAD_REQUEST]: [400, 'bad_request'],
  [Reason.INVALID_TOKEN]: [401, 'invalid_token'],
  [Reason.TOKEN_USED]: [401, 'token_used'],
  [Reason.ORIGIN_NOT_ALLOWED]: [401, 'origin_not_allowed'],
  [Reason.NOT_FOUND]: [404, 'not_found'],
  [Reason.METHOD]: [404, 'method'],
  [Reason.CONFLICT]: [409, 'conflict'],
  [Reason.EXPIRED]: [410, 'expired'],
  [Reason.CLOSED]: [410, 'closed'],
  [Reason.ARCHIVED]: [410, 'archived'],
  [Reason.TOO_LARGE]: [413, 'too_large'],
  [Reason.MEDIA_TYPE]: [415, 'media_type'],
  [Reason.INVALID]: [422, 'invalid'],
  [Reason.RATE_LIMITED]: [429, 'rate_limited'],
  [Reason.INTERNAL]: [500, 'internal'],
  [Reason.UNAVAILABLE]: [503, 'unavailable'],
};

/** A failure as pages tell it. `headers` go onto the reply. */
export type Failed = {
  status: number;
  reason: string;
  violations: readonly Violation[];
  headers: Record<string, string>;
  submissionId: string;
};
