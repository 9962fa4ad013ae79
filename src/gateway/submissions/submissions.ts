import type { MessageInitShape } from '@bufbuild/protobuf';
import { z } from 'zod';
import {
  type AnswerFilterSchema,
  MentionSchema,
  MentionsSchema,
  RespondentSchema,
  SubmissionSchema,
  SubmissionStatus,
  SubmissionsService,
} from '../../../gen/headlessforms/v1/submissions_pb.js';
import { enumValue } from '../../domain/enums.ts';
import { optional } from '../../domain/json/optional.ts';
import { contextSchema } from '../../domain/sessions/context.ts';
import { withPaths } from '../../http/errors.ts';
import { provenance, readProvenance } from '../../http/reply-parts.ts';
import { flag, jsonObject, pageQuery, timeInput } from '../../http/schemas.ts';
import { from, shape, timeReply, timeText } from '../../http/shape.ts';
import { done, listRoute, type Route, readQuery, replyOf, route, tagged } from '../route.ts';

const { method: rpcs } = SubmissionsService;

/** The largest that the message can carry. */
const MAX_OFFSET = 2 ** 31 - 1;

const status = z.enum(['accepted', 'spam', 'replaced']);

const respondent = shape(RespondentSchema, '', {
  method: z.literal('email_code'),
  email: z.string(),
  verified_at: from('verify_time', timeReply),
});

/** A submission as replies have it. */
export const submission = shape(SubmissionSchema, 'Submission', {
  id: z.string(),
  form_id: z.string(),
  form_version_id: z.string(),
  session_id: z.string().nullable(),
  source: z.string(),
  answers: jsonObject,
  status,
  created_at: timeReply,
  metadata: jsonObject.describe('The metadata of its session.'),
  replaces: optional(z.string(), 'The submission that it corrects.'),
  replaced_by: optional(z.string(), 'The submission that counts in its place.'),
  context: optional(contextSchema, 'What the person was shown; where one submission is read.'),
  personal: optional(
    z.array(z.string()),
    'The ids of answers that are personal; where one submission is read, and in exports.',
  ),
  respondent: {
    ...respondent,
    schema: respondent.schema
      .nullable()
      .meta({ id: 'Respondent' })
      .describe('Who answered on the page with a code emailed to their address; null for all others.'),
  },
  provenance: from(
    readProvenance,
    optional(
      provenance,
      'Where each answer comes from, by field id; not of submissions that are older than this record.',
    ),
  ),
});

/** What submissions are asked for by, in a list and in a stream. */
export const filterQuery = {
  source: optional(z.string().min(1), 'Only those from this source.'),
  status: optional(status, 'Default: `accepted`.'),
};

/** A field and perhaps an operator, in brackets. */
const filterName = /^\[([^[\]]+)\](?:\[(eq|in|gte|lte|contains)\])?$/;

const submissionsQuery = pageQuery.extend({
  offset: z
    .string()
    .regex(/^\d+$/, 'Expected a whole number from 0')
    .transform((text) => Math.min(Number(text), MAX_OFFSET))
    .exactOptional()
    .meta({ type: 'integer', minimum: 0, description: 'How many to skip, default 0; `cursor` is faster.' }),
  session_id: optional(z.string().min(1), 'Only those made in this session.'),
  replaced: flag('Those that were corrected since, as with `status=replaced`; else they are left out.'),
  ...filterQuery,
  created_after: optional(timeInput, 'Only those accepted at or after this time.'),
  created_before: optional(timeInput, 'Only those accepted before this time.'),
  filter: z
    .record(z.string().regex(filterName, 'Expected filter[field] or filter[field][operator]'), z.string())
    .exactOptional()
    .meta({
      type: 'object',
      description:
        'Only those with these answers, up to 3: `filter[topic]=sales`, or with an operator, `filter[score][gte]=3`: `eq`, `in` (values with commas between them), `gte`, `lte`, `contains`.',
    }),
  total: flag('Counts all that fit, over all pages.'),
});

const submissionList = listRoute('/v1/forms/:id/submissions', rpcs.listSubmissions, {
  summary: 'List a form’s submissions, newest first',
  name: 'submissions',
  query: submissionsQuery,
  apart: ['offset', 'status', 'replaced', 'filter', 'total'],
  input: ({ query: { offset, status, replaced, filter, total }, continued }) => ({
    skip: continued ? 0 : (offset ?? 0),
    status: enumValue(SubmissionStatus, replaced ? 'replaced' : status),
    filters: Object.entries(filter ?? {}).map(toFilter),
    includeTotal: total && !continued,
  }),
  item: submission,
  beside: {
    shape: {
      total: optional(z.int(), 'With `total=true`; absent: too many to count in one call.'),
      searched_until: optional(
        timeReply,
        'What was accepted before this time was not searched yet: `next_cursor` goes on.',
      ),
    },
    of: ({ totalSize, searchedUntil }) => ({
      ...(totalSize !== undefined && { total: Number(totalSize) }),
      ...(searchedUntil !== undefined && { searched_until: timeText(searchedUntil) }),
    }),
    isLast: ({ searchedUntil }) => searchedUntil !== undefined,
  },
});

const mention = shape(MentionSchema, '', {
  submission_id: z.string(),
  form_id: z.string(),
  field_id: z.string(),
});

/** The routes that read and delete submissions. */
export const submissionRoutes: Route[] = tagged('Submissions', [
  {
    ...submissionList,
    handle: (context) =>
      submissionList.handle(context).catch((error: unknown) => {
        // The RPC names conditions by their number.
        const names = Object.keys(readQuery(context.request, submissionsQuery).filter ?? {});
        const nameOf = (_: string, index: string) => `filter${names[Number(index)] ?? ''}`;
        throw withPaths(error, (path) =>
          path.replace(/^filters\.(\d+)\..*$/, nameOf).replace(/^filters$/, 'filter'),
        );
      }),
  },
  route('get', '/v1/submissions/:id', rpcs.getSubmission, {
    summary: 'Read one submission',
    ...replyOf(rpcs.getSubmission.output, { submission }),
  }),
  route('delete', '/v1/submissions/:id', rpcs.deleteSubmission, {
    summary: 'Delete a submission with its event, deliveries and files',
    ...done,
  }),
  route('post', '/v1/erasures', rpcs.eraseSubmissions, {
    summary: 'Delete every submission and session in which a value is found, such as an email address',
    errors: [404],
    body: z.strictObject({
      value: z
        .string()
        .describe(
          'The whole of an answer, a source, an idempotency key or the name of a file; case and spaces around it make no difference, and a number is found however it is written.',
        ),
      form_id: optional(z.string(), 'Only in this form; absent: in all of the project.'),
      include_mentions: optional(
        z.boolean(),
        'Whether submissions go, too, with an answer that has the value in it among other words.',
      ),
      cursor: optional(z.string(), 'The `next_cursor` of the reply before.'),
    }),
    apart: ['cursor'],
    input: ({ body: { cursor = '' } }) => ({ pageToken: cursor }),
    ...replyOf(rpcs.eraseSubmissions.output, {
      ok: z.literal(true),
      erased_submissions: z.int(),
      erased_sessions: z.int().describe('Beside those of the submissions.'),
      searched_rows: z.int().describe('Submissions, sessions and events that this call looked at.'),
      mentions: shape(MentionsSchema, '', {
        count: z.int().describe('Answers that have the value in them, and were left.'),
        first: { ...mention, schema: z.array(mention.schema).describe('The first 100 of them.') },
      }),
      next_cursor: from(
        'next_page_token',
        z
          .string()
          .nullable()
          .describe('Call again with it: a call looks through about two seconds’ worth. Null at the end.'),
      ),
    }),
  }),
]);

/** A condition of the query as the message has it. */
function toFilter([name, text]: [string, string]): MessageInitShape<typeof AnswerFilterSchema> {
  const [, fieldId = '', op = 'eq'] = filterName.exec(name) ?? [];
  switch (op) {
    case 'in':
      return { fieldId, condition: { case: op, value: { values: text.split(',') } } };
    case 'gte':
    case 'lte':
    case 'contains':
      return { fieldId, condition: { case: op, value: text } };
    default:
      return { fieldId, condition: { case: 'eq', value: text } };
  }
}
