import { z } from 'zod';
import { type Submission, SubmissionStatus } from '../../../gen/forms/v1/submissions_pb.js';
import {
  jsonObject,
  nextCursor,
  pageQuery,
  present,
  textOrNull,
  timeInput,
  timeOf,
  timeReply,
} from './common.ts';

/** What is posted to a form. */
export const submissionBody = z
  .strictObject({
    answers: jsonObject.describe('The answers by field id.'),
    source: z.string().exactOptional().describe('Where they come from, up to 200 characters; default `api`.'),
  })
  .meta({ id: 'SubmissionInput' });

/** The header that makes submitting safe to repeat. */
export const idempotencyKey = z
  .string()
  .min(1)
  .max(255)
  .describe('The same key with the same content gives the first answer again.');

/** What is posted to the demo form: as to any other, or its three answers as they are. */
export const demoBody = z.union([
  submissionBody,
  z.looseObject({
    name: z.unknown().meta({ type: 'string' }).optional(),
    email: z.unknown().meta({ type: 'string' }).optional(),
    message: z.unknown().meta({ type: 'string' }).optional(),
  }),
]);

export const acceptedReply = z
  .object({
    ok: z.literal(true),
    submission_id: z.string().meta({ examples: ['sub_01jd3kvz8nf9t8x1v0c9m2q4ra'] }),
  })
  .meta({ id: 'Accepted' });

const status = z.enum(['accepted', 'spam']);

export const submission = z
  .object({
    id: z.string(),
    form_id: z.string(),
    form_version_id: z.string(),
    session_id: z.string().nullable(),
    source: z.string(),
    answers: jsonObject,
    status,
    created_at: timeReply,
    metadata: jsonObject.describe('The metadata of its session.'),
  })
  .meta({ id: 'Submission' });

export const submissionReply = z.object({ submission });
export const submissionsReply = z.object({ submissions: z.array(submission), next_cursor: nextCursor });

/** The page and the filters of a form's submissions. */
export const submissionsQuery = pageQuery.extend({
  offset: z
    .string()
    .regex(/^\d+$/, 'Expected a whole number from 0')
    .transform((text) => Math.min(Number(text), MAX_OFFSET))
    .exactOptional()
    .meta({ type: 'integer', minimum: 0, description: 'How many to skip, default 0; `cursor` is faster.' }),
  session_id: z.string().min(1).exactOptional().describe('Only those made in this session.'),
  source: z.string().min(1).exactOptional().describe('Only those from this source.'),
  status: status.exactOptional().describe('Default: `accepted`.'),
  created_after: timeInput.exactOptional().describe('Only those accepted at or after this time.'),
  created_before: timeInput.exactOptional().describe('Only those accepted before this time.'),
});

/** The format of an export. */
export const exportQuery = z.object({ format: z.enum(['csv', 'ndjson']).default('csv') });

/** A submission as replies have it. */
export function submissionOf(message: Submission | undefined): z.input<typeof submission> {
  const there = present(message);
  return {
    id: there.id,
    form_id: there.formId,
    form_version_id: there.formVersionId,
    session_id: textOrNull(there.sessionId),
    source: there.source,
    answers: there.answers ?? {},
    status: there.status === SubmissionStatus.SPAM ? 'spam' : 'accepted',
    created_at: timeOf(there.createTime),
    metadata: there.metadata ?? {},
  };
}

/** The largest the message can say; nobody has as many. */
const MAX_OFFSET = 2 ** 31 - 1;
