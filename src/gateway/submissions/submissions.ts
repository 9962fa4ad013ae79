import { z } from 'zod';
import {
  type Submission,
  SubmissionStatus,
  SubmissionsService,
} from '../../../gen/forms/v1/submissions_pb.js';
import { answerChannels } from '../../domain/answers/provenance.ts';
import { provenanceOf } from '../../http/provenance.ts';
import { present, textOrNull, timeOf } from '../../http/values.ts';
import { listRoute } from '../list-route.ts';
import { type Route, route, tagged } from '../route.ts';
import { jsonObject, okReply, pageQuery, timeInput, timeReply } from '../schemas.ts';

const { method: rpcs } = SubmissionsService;

/** The largest that the message can carry. */
const MAX_OFFSET = 2 ** 31 - 1;

const status = z.enum(['accepted', 'spam']);

/** Where answers come from, as replies have it. */
export const provenance = z.record(
  z.string(),
  z
    .object({
      by: z
        .enum(answerChannels)
        .describe(
          '`human`: from the hosted page, where whoever holds the link can answer. `api`: by a call or an HTML form. ' +
            '`prefill`: left as it was. `default`: the field’s.',
        ),
      at: timeReply,
      key_id: z.string().exactOptional().describe('The key that brought it, if one of the project did.'),
    })
    .meta({ id: 'AnswerOrigin' }),
);

/** A submission as replies have it. */
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
    provenance: provenance
      .exactOptional()
      .describe(
        'Where each answer comes from, by field id; not of submissions that are older than this record.',
      ),
  })
  .meta({ id: 'Submission' });

/** What submissions are asked for by, in a list and in a stream. */
export const filterQuery = {
  source: z.string().min(1).exactOptional().describe('Only those from this source.'),
  status: status.exactOptional().describe('Default: `accepted`.'),
};

const submissionsQuery = pageQuery.extend({
  offset: z
    .string()
    .regex(/^\d+$/, 'Expected a whole number from 0')
    .transform((text) => Math.min(Number(text), MAX_OFFSET))
    .exactOptional()
    .meta({ type: 'integer', minimum: 0, description: 'How many to skip, default 0; `cursor` is faster.' }),
  session_id: z.string().min(1).exactOptional().describe('Only those made in this session.'),
  ...filterQuery,
  created_after: timeInput.exactOptional().describe('Only those accepted at or after this time.'),
  created_before: timeInput.exactOptional().describe('Only those accepted before this time.'),
});

/** The routes that read and delete submissions. */
export const submissionRoutes: Route[] = tagged('Submissions', [
  listRoute('/v1/forms/:id/submissions', rpcs.listSubmissions, {
    summary: 'List a form’s submissions, newest first',
    name: 'submissions',
    query: submissionsQuery,
    input: ({ id, query, page, continued }) => ({
      formId: id,
      ...page,
      skip: continued ? 0 : (query.offset ?? 0),
      sessionId: query.session_id ?? '',
      source: query.source ?? '',
      status: query.status === 'spam' ? SubmissionStatus.SPAM : SubmissionStatus.UNSPECIFIED,
      createdAfter: query.created_after,
      createdBefore: query.created_before,
    }),
    item: submission,
    answer: ({ submissions, nextPageToken }) => ({ items: submissions.map(submissionOf), nextPageToken }),
  }),
  route('get', '/v1/submissions/:id', rpcs.getSubmission, {
    summary: 'Read one submission',
    input: ({ id }) => ({ submissionId: id }),
    reply: z.object({ submission }),
    answer: ({ submission }) => ({ submission: submissionOf(submission) }),
  }),
  route('delete', '/v1/submissions/:id', rpcs.deleteSubmission, {
    summary: 'Delete a submission with its event, deliveries and files',
    input: ({ id }) => ({ submissionId: id }),
    reply: okReply,
    answer: () => ({ ok: true as const }),
  }),
  route('post', '/v1/erasures', rpcs.eraseSubmissions, {
    summary: 'Delete every submission and session in which a value is found, such as an e-mail address',
    body: z.strictObject({
      value: z.string().describe('The whole of an answer; upper and lower case are the same.'),
      form_id: z.string().exactOptional().describe('Only in this form; absent: in all of the project.'),
      cursor: z.string().exactOptional().describe('The `next_cursor` of the reply before.'),
    }),
    input: ({ body }) => ({
      value: body.value,
      formId: body.form_id ?? '',
      pageToken: body.cursor ?? '',
    }),
    reply: z.object({
      ok: z.literal(true),
      erased_submissions: z.int(),
      erased_sessions: z.int().describe('Beside those of the submissions.'),
      next_cursor: z
        .string()
        .nullable()
        .describe('Call again with it: a call looks through about two seconds’ worth. Null at the end.'),
    }),
    answer: ({ erasedSubmissions, erasedSessions, nextPageToken }) => ({
      ok: true as const,
      erased_submissions: erasedSubmissions,
      erased_sessions: erasedSessions,
      next_cursor: nextPageToken === '' ? null : nextPageToken,
    }),
  }),
]);

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
    ...provenanceOf(there),
  };
}
