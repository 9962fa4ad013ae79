import { NextCall, Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import { failed } from '../errors/failure.ts';

/** Throws `FAILED_PRECONDITION` if the session had ended when it was read. */
export function refuseIfEnded({ status, submissionId }: Ended): void {
  if (status === 'submitted') throw alreadySubmitted(submissionId ?? '');
  if (status === 'expired') throw expired();
  if (status === 'cancelled') throw cancelled();
  if (status === 'declined') throw declined();
}

/** The session has a submission already. */
export function alreadySubmitted(submissionId: string) {
  return failed(Reason.CONFLICT, 'This session has already been submitted', { submissionId });
}

/** The respondent's mailbox has answered the form, which takes one submission of each. */
export function alreadyAnswered() {
  return failed(Reason.CONFLICT, 'This mailbox has already answered the form', { nextCall: NextCall.NONE });
}

/** Only the page of a session or form takes the answers: it asks for a code first. */
export function codeNeeded({ hostedUrl }: { hostedUrl: string }, pageId: string) {
  const pageUrl = `${hostedUrl}/f/${pageId}`;
  const message = `Only the page accepts answers, after a code that it emails to the respondent: ${pageUrl}`;
  return failed(Reason.CODE_NEEDED, message, { pageUrl });
}

/** The session's time is over. */
export function expired() {
  return failed(Reason.EXPIRED, 'This session has expired');
}

/** Its maker has ended the session. */
export function cancelled() {
  return failed(Reason.CANCELLED, 'This session has been cancelled');
}

/** The person has declined to answer. */
export function declined() {
  return failed(Reason.DECLINED, 'The person has declined to answer in this session');
}

type Ended = {
  status: 'open' | 'submitted' | 'expired' | 'cancelled' | 'declined';
  submissionId: string | null;
};
