import { z } from 'zod';
import { type Session, SessionStatus } from '../../../gen/forms/v1/sessions_pb.js';
import { jsonObject, present, seconds, textOrNull, timeOf, timeOrNull, timeReply } from './common.ts';
import { submission } from './submissions.ts';

/** How long a session may live, in seconds: 30 days. */
const MAX_LIFE = 2_592_000;

const metadata = jsonObject.describe('Any data, up to 16 KiB; it comes back with events and the submission.');

export const createSessionBody = z
  .strictObject({
    expires_in: seconds({ minimum: 1, maximum: MAX_LIFE, default: 3600 }).exactOptional(),
    prefill: jsonObject.exactOptional().describe('Answers to begin with, by field id.'),
    metadata: metadata.exactOptional(),
  })
  .meta({ id: 'CreateSessionInput' });

export const updateSessionBody = z
  .strictObject({
    expires_in: seconds({ minimum: 1, maximum: MAX_LIFE })
      .exactOptional()
      .describe('Seconds from now. Not together with `extend_by`.'),
    extend_by: seconds({ minimum: 1, maximum: MAX_LIFE })
      .exactOptional()
      .describe('Seconds to add, to at most 30 days from now.'),
    prefill: jsonObject.exactOptional().describe('Merged into what is there; null removes.'),
    metadata: metadata.exactOptional().describe('Merged into what is there; null removes.'),
    answers: jsonObject
      .exactOptional()
      .describe('Partial answers, merged into what is there; only with `allowPartial`.'),
  })
  .meta({ id: 'UpdateSessionInput' });

export const submitSessionBody = z
  .strictObject({
    answers: jsonObject
      .exactOptional()
      .describe('They go over partial answers, those over prefill, and that over defaults; null clears.'),
  })
  .meta({ id: 'SubmitSessionInput' });

const session = z
  .object({
    id: z.string().describe('Whoever has it can fill the session.'),
    form_id: z.string(),
    form_version_id: z.string(),
    status: z.enum(['open', 'submitted', 'expired']),
    url: z.string().describe('The hosted page.'),
    expires_at: timeReply,
    created_at: timeReply,
    opened_at: timeReply.nullable(),
    prefill: jsonObject,
    metadata: jsonObject,
    submission_id: z.string().nullable(),
    partial_answers: jsonObject.exactOptional().describe('Only with `allowPartial`.'),
  })
  .meta({ id: 'Session' });

export const sessionReply = z.object({ session });

export const submittedReply = z.object({
  ok: z.literal(true),
  submission_id: z.string(),
  submission,
  session,
});

/** A session as replies have it. */
export function sessionOf(message: Session | undefined): z.input<typeof session> {
  const there = present(message);
  return {
    id: there.id,
    form_id: there.formId,
    form_version_id: there.formVersionId,
    status: statusOf(there.status),
    url: there.url,
    expires_at: timeOf(there.expireTime),
    created_at: timeOf(there.createTime),
    opened_at: timeOrNull(there.openTime),
    prefill: there.prefill ?? {},
    metadata: there.metadata ?? {},
    submission_id: textOrNull(there.submissionId),
    ...(there.partialAnswers === undefined ? {} : { partial_answers: there.partialAnswers }),
  };
}

function statusOf(status: SessionStatus): z.input<typeof session>['status'] {
  if (status === SessionStatus.SUBMITTED) return 'submitted';
  return status === SessionStatus.EXPIRED ? 'expired' : 'open';
}
