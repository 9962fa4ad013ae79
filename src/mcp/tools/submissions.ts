import { z } from 'zod';
import { Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import { SessionsService } from '../../../gen/headlessforms/v1/sessions_pb.js';
import { SubmissionSchema, SubmissionsService } from '../../../gen/headlessforms/v1/submissions_pb.js';
import { failed } from '../../domain/errors/failure.ts';
import { optional } from '../../domain/json/optional.ts';
import { MAX_SOURCE_LENGTH } from '../../domain/limits/limits.ts';
import { messageFrom } from '../../domain/messages.ts';
import { present, shape, textOrNullReply } from '../../http/shape.ts';
import { defineTool, jsonObject, type Tool } from '../tool.ts';
import {
  answers,
  cursor,
  formId,
  idempotencyKey,
  limit,
  nextCursor,
  sessionId,
  submissionId,
} from './schemas.ts';

const { method: rpcs } = SubmissionsService;
const { method: sessionRpcs } = SessionsService;

const submission = shape(SubmissionSchema, '', {
  id: z.string(),
  session_id: z.string().nullable(),
  source: z.string(),
  created_at: z.string(),
  replaced_by: z.string().exactOptional(),
});

/** The tools that give and read answers. */
export const submissionTools: Tool[] = [
  defineTool({
    name: 'submit_answers',
    title: 'Submit answers',
    description:
      'Submits answers that you have to a published form (form_id), or ends an open session with them (session_id; ' +
      'its prefill and partial answers count). Read get_form first. Fields that only a person may answer are refused: ' +
      'hand those over with ask_person.',
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false },
    rpcs: [[rpcs.createManagedSubmission], [sessionRpcs.submitSession]],
    input: z.strictObject({
      form_id: formId.exactOptional(),
      session_id: optional(sessionId, 'Instead of form_id: the session to end.'),
      answers: jsonObject.describe('By field id.'),
      source: z
        .string()
        .max(MAX_SOURCE_LENGTH)
        .default('mcp')
        .describe('Where they come from; not with session_id.'),
      idempotency_key: idempotencyKey.describe(
        'Any text of your own: repeated with it, the same call gives the first result again. Not with session_id: a ' +
          'session is submitted once, and a repeat is told which submission that was.',
      ),
    }),
    output: z.looseObject({ submission_id: z.string() }),
    async run({ session_id, ...asked }, { call }) {
      const { form_id, answers } = asked;
      if ((form_id === undefined) === (session_id === undefined)) {
        throw failed(Reason.INVALID, 'Expected form_id or session_id, and not both');
      }
      if (session_id !== undefined) {
        const { submission } = await call(sessionRpcs.submitSession, { sessionId: session_id, answers });
        return { facts: { submission_id: present(submission).id } };
      }
      const message = messageFrom(rpcs.createManagedSubmission.input, asked);
      const { submissionId: id } = await call(rpcs.createManagedSubmission, message);
      return { facts: { submission_id: id } };
    },
  }),
  defineTool({
    name: 'list_submissions',
    title: 'List submissions',
    description:
      'Lists the submissions of a form, newest first, without their answers unless include_answers is set; ' +
      'get_submission reads one.',
    annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true },
    rpcs: [[rpcs.listSubmissions]],
    input: z.strictObject({
      form_id: formId,
      session_id: optional(sessionId, 'Only that of this session.'),
      source: optional(z.string().min(1), 'Only those from this source.'),
      include_answers: z.boolean().default(false),
      limit,
      cursor,
    }),
    output: z.looseObject({ submissions: z.array(submission.schema.loose()), next_cursor: nextCursor }),
    async run({ limit: pageSize, cursor: pageToken = '', include_answers, ...input }, { call }) {
      const page = { pageSize, pageToken, ...messageFrom(rpcs.listSubmissions.input, input) };
      const { submissions, nextPageToken } = await call(rpcs.listSubmissions, page);
      return {
        facts: {
          submissions: submissions.map((each) => ({
            ...submission.of(each),
            ...(include_answers && { answers: each.answers ?? {} }),
          })),
          next_cursor: textOrNullReply(nextPageToken),
        },
        untrusted: ['submissions[].source', ...(include_answers ? ['submissions[].answers'] : [])],
      };
    },
  }),
  defineTool({
    name: 'get_submission',
    title: 'Read a submission',
    description: 'Reads one submission: its answers, and who gave each of them.',
    annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true },
    rpcs: [[rpcs.getSubmission]],
    input: z.strictObject({ submission_id: submissionId }),
    output: z.looseObject({ submission: submission.schema.loose(), ...answers.schema.shape }),
    async run({ submission_id: id }, { call }) {
      const { submission: read } = await call(rpcs.getSubmission, { submissionId: id });
      return {
        facts: { submission: submission.of(read), ...answers.of(read) },
        untrusted: ['answers', 'submission.source'],
      };
    },
  }),
];
