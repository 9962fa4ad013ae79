import { z } from 'zod';
import { type Session, SessionStatus } from '../../../gen/forms/v1/sessions_pb.js';
import type { Submission } from '../../../gen/forms/v1/submissions_pb.js';
import { idempotencyKeyLength, pageSizes } from '../../domain/limits/limits.ts';
import { provenanceOf } from '../../http/provenance.ts';
import { textOrNull, timeOf } from '../../http/values.ts';
import { jsonObject } from '../tool.ts';

export const formId = z.string().min(1).describe('`form_…`');
export const sessionId = z
  .string()
  .min(1)
  .describe('`sess_…`, a secret: whoever has it can fill the session.');
export const submissionId = z.string().min(1).describe('`sub_…`');

export const idempotencyKey = z
  .string()
  .min(idempotencyKeyLength.min)
  .max(idempotencyKeyLength.max)
  .exactOptional()
  .describe('Any text of your own: repeated with it, the same call gives the first result again.');

export const language = z
  .string()
  .max(100)
  .default('')
  .describe('Of the questions, as a BCP 47 tag, if the form is translated into it.');

/** Few, since models pay for each word. */
const SMALL_PAGE = 10;

export const limit = z.int().min(1).max(pageSizes.max).default(SMALL_PAGE).describe('How many to return.');
export const cursor = z.string().min(1).exactOptional().describe('The next_cursor of the page before.');
export const nextCursor = z.string().nullable().describe('For the next page; null on the last.');

const provenance = z
  .record(z.string(), z.looseObject({ by: z.string(), at: z.string(), key_id: z.string().optional() }))
  .optional()
  .describe('By field: human (on the page), api, prefill or default, when, and by which key.');

/** What a person's answers come with. */
export const answersShape = {
  submission_id: z.string().nullable(),
  answers: jsonObject.optional().describe('By field id.'),
  provenance,
};

/** The answers of a submission with their origins. */
export function answersOf(submission: Submission) {
  return {
    submission_id: submission.id,
    answers: submission.answers ?? {},
    ...provenanceOf(submission),
  };
}

const sessionStatus = z.enum(['open', 'submitted', 'expired', 'cancelled']);

export const sessionShape = {
  session_id: z.string(),
  form_id: z.string(),
  status: sessionStatus,
  url: z.string().describe('The page on which a person answers.'),
  expires_at: z.string(),
};

/** The least that is to be known of a session. */
export function sessionOf(session: Session) {
  return {
    session_id: session.id,
    form_id: session.formId,
    status: sessionStatus.options.find((name) => statuses[name] === session.status) ?? 'open',
    url: session.url,
    expires_at: timeOf(session.expireTime),
    submission_id: textOrNull(session.submissionId),
  };
}

const statuses = {
  open: SessionStatus.OPEN,
  submitted: SessionStatus.SUBMITTED,
  expired: SessionStatus.EXPIRED,
  cancelled: SessionStatus.CANCELLED,
} satisfies Record<z.output<typeof sessionStatus>, SessionStatus>;
