import { NextCall, Reason } from '../../../gen/forms/v1/errors_pb.js';
import { isForPerson } from './violations.ts';

/** Whether the call that failed for `reason` can succeed later without any change. */
export function isRetryable(reason: Reason): boolean {
  return nextCalls[reason] === NextCall.SAME;
}

/** What to call after a failure, for every interface. */
export function nextCallAfter(reason: Reason, { violations = [], submissionId = '' }: Facts = {}): NextCall {
  if (violations.some(isForPerson)) return NextCall.CREATE_SESSION;
  return submissionId === '' ? nextCalls[reason] : NextCall.GET_SUBMISSION;
}

/** An unexpected fault comes again when the call does, and what the call did before it is not known. */
const nextCalls: Record<Reason, NextCall> = {
  [Reason.UNSPECIFIED]: NextCall.NONE,
  [Reason.BAD_REQUEST]: NextCall.CORRECTED,
  [Reason.MISSING_KEY]: NextCall.WITH_KEY,
  [Reason.INVALID_KEY]: NextCall.WITH_KEY,
  [Reason.INSUFFICIENT_SCOPE]: NextCall.WITH_KEY,
  [Reason.INVALID_TOKEN]: NextCall.CREATE_FORM,
  [Reason.TOKEN_USED]: NextCall.CREATE_FORM,
  [Reason.ORIGIN_NOT_ALLOWED]: NextCall.NONE,
  [Reason.NOT_FOUND]: NextCall.LIST,
  [Reason.METHOD]: NextCall.CORRECTED,
  [Reason.CONFLICT]: NextCall.READ,
  [Reason.EXPIRED]: NextCall.CREATE_SESSION,
  [Reason.CANCELLED]: NextCall.CREATE_SESSION,
  [Reason.CLOSED]: NextCall.NONE,
  [Reason.ARCHIVED]: NextCall.NONE,
  [Reason.DELETED]: NextCall.NONE,
  [Reason.TOO_LARGE]: NextCall.CORRECTED,
  [Reason.MEDIA_TYPE]: NextCall.CORRECTED,
  [Reason.INVALID]: NextCall.CORRECTED,
  [Reason.RATE_LIMITED]: NextCall.SAME,
  [Reason.INTERNAL]: NextCall.NONE,
  [Reason.UNAVAILABLE]: NextCall.SAME,
};

type Facts = { violations?: readonly { message: string }[]; submissionId?: string };
