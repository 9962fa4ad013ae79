import { Code, ConnectError } from '@connectrpc/connect';
import { FailureSchema, Reason, type Violation } from '../../gen/forms/v1/errors_pb.js';
import { type RefusalBody, type RefusalWord, refusalBody, statusOf, wordOf } from '../domain/refusal.ts';

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
export function errorBody(failed: Told, message: string): RefusalBody {
  const { reason, violations, submissionId } = failed;
  return refusalBody({ reason, message, details: violations, submissionId });
}

/** The headers of an RPC's reply that go on to the browser. */
export const passedBack = ['ratelimit', 'ratelimit-policy', 'retry-after'] as const;

function describe(reason: Reason): { status: number; reason: RefusalWord } {
  const word = wordOf(reason);
  return { status: statusOf[word], reason: word };
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

/** A failure as pages tell it. `headers` go onto the reply. */
export type Failed = {
  status: number;
  reason: RefusalWord;
  violations: readonly Violation[];
  headers: Record<string, string>;
  submissionId: string;
};

/** The part of a failure that the documented error tells. */
type Told = Pick<Failed, 'reason' | 'violations' | 'submissionId'>;
