import { z } from 'zod';
import { type Session, SessionSchema } from '../../../gen/headlessforms/v1/sessions_pb.js';
import { SubmissionSchema } from '../../../gen/headlessforms/v1/submissions_pb.js';
import { idempotencyKeyLength, pageSizes } from '../../domain/limits/limits.ts';
import { notifyOf } from '../../http/notify.ts';
import { readProvenance } from '../../http/provenance.ts';
import { from, shape } from '../../http/shape.ts';
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

/** The answers of a submission with their origins. */
export const answers = shape(SubmissionSchema, '', {
  submission_id: from('id', z.string().nullable()),
  answers: jsonObject.optional().describe('By field id.'),
  provenance: from(
    readProvenance,
    z
      .record(z.string(), z.looseObject({ by: z.string(), at: z.string(), key_id: z.string().optional() }))
      .optional()
      .describe('By field: human (on the page), mcp_user, api, prefill or default, when, and by which key.'),
  ),
});

/** The least that is to be known of a session. */
export const session = shape(SessionSchema, '', {
  session_id: from('id', z.string()),
  form_id: z.string(),
  status: z.enum(['open', 'submitted', 'declined', 'expired', 'cancelled']),
  url: z.string().describe('The page on which a person answers.'),
  expires_at: z.string(),
  notify: from(
    ({ notification }: Session) => notifyOf(notification),
    z
      .looseObject({ sent_at: z.string().nullable(), failed: z.boolean(), stopped: z.boolean() })
      .optional()
      .describe('Who is notified, and what came of that.'),
  ),
  submission_id: z.string().nullable(),
  outcome: z
    .enum(['submitted', 'declined', 'expired', 'cancelled'])
    .nullable()
    .describe('null while it is open. Only submitted is an answer.'),
  reason: z.string().exactOptional().describe('Why the person declined.'),
});
