import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import { Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import type {
  CheckAnswersRequest,
  SubmissionsService,
} from '../../../gen/headlessforms/v1/submissions_pb.js';
import { checkOrigin } from '../../domain/addresses/origins.ts';
import { failed, notFound, violationToMessage } from '../../domain/errors/failure.ts';
import { demoFormId } from '../../domain/ids.ts';
import { STREAM_TOKEN_MS, streamToken } from '../../domain/links.ts';
import { type Caller, callerOf } from '../../rpc/context.ts';
import type { EventHead } from '../../store/events.ts';
import { findAnySession } from '../../store/sessions/sessions.ts';
import { findSubmission, type Submission } from '../../store/submissions/submissions.ts';
import type { ServiceContext } from '../context.ts';
import { streamEvents } from '../events/event-stream.ts';
import {
  type PublishedForm,
  publishedForm,
  refuseIfClosed,
  requireProjectForm,
} from '../forms/form-access.ts';
import { requireFound } from '../request-values.ts';
import { checkedAnswers, checkSize } from './accept-answers.ts';
import { deleteStored, eraseSubmissions } from './erasure.ts';
import { exportForm } from './export.ts';
import { createSubmissionList } from './list.ts';
import { readDetail, submissionStatusOf, submissionToMessage, wholeSubmission } from './submission-proto.ts';
import { acceptRequest, readRequest } from './submission-request.ts';

/** Accepts the answers people give to a form, and reads them back. */
export function submissionsService(context: ServiceContext): ServiceImpl<typeof SubmissionsService> {
  return {
    /** The hot path: it reads from caches, and its one write is grouped with others'. */
    async createSubmission(request, call) {
      const form = await answerableForm(context, request, call);
      const { submissionId } = await acceptRequest(context, form, readRequest(request, form, call), call);
      return { submissionId };
    },

    async createManagedSubmission(request, call) {
      const form = await answerableForm(context, request, call, callerOf(call).projectId);
      const { submissionId } = await acceptRequest(context, form, readRequest(request, form, call), call);
      return { submissionId };
    },

    async checkAnswers(request, call) {
      const form = await answerableForm(context, request, call);
      return { violations: await violationsOf(context, form, request, call) };
    },

    async checkManagedAnswers(request, call) {
      const form = await answerableForm(context, request, call, callerOf(call).projectId);
      return { violations: await violationsOf(context, form, request, call) };
    },

    /** The origin is not checked: anybody may try the demo, and its submissions go to the operator alone. */
    async createDemoSubmission({ answers, source, idempotencyKey }, call) {
      const form = await publishedForm(context.forms, demoFormId);
      const request = readRequest(
        { answers, source: source === '' ? 'demo' : source, idempotencyKey },
        form,
        call,
      );
      const { submissionId } = await acceptRequest(context, form, request, call);
      return { submissionId };
    },

    async getSubmission({ submissionId }, call) {
      const submission = await projectSubmission(context, callerOf(call), submissionId);
      const { sessionId, formId, versionId } = submission;
      const session = sessionId === null ? null : await findAnySession(context.database, sessionId);
      const { definition } = await context.forms.version(versionId);
      const whole = wholeSubmission(submission, session, definition);
      context.audit.note(call, { resource: submissionId, formId, ...readDetail(whole) });
      return { submission: whole };
    },

    listSubmissions: createSubmissionList(context),

    async *exportSubmissions(request, call) {
      const { projectId } = callerOf(call);
      await requireProjectForm(context.forms, callerOf(call), request.formId);
      yield* exportForm(context, { ...request, projectId }, call);
    },

    /** Streams the submissions of a form, or of the caller's project, as they come. */
    async *watchSubmissions({ formId, source, status, cursor }, call) {
      const { projectId, streamOf = formId } = callerOf(call);
      if (streamOf !== formId) throw failed(Reason.INVALID_TOKEN, 'The stream token is for another form');
      const find = async ({ id, submissionId }: EventHead) => {
        const found =
          submissionId === null ? null : await findSubmission(context.database, projectId, submissionId);
        const isWanted = found !== null && (source === '' || found.source === source);
        return isWanted ? [[id, { submission: submissionToMessage(found) }] as const] : [];
      };
      yield* streamEvents(context, call, {
        formId,
        cursor,
        types: typesOf[submissionStatusOf(status)],
        load: async (events) => new Map((await Promise.all(events.map(find))).flat()),
      });
    },

    async createStreamToken({ formId }, call) {
      const { forms, secretKey, now } = context;
      const caller = callerOf(call);
      await requireProjectForm(forms, caller, formId);
      const expiresAt = now() + STREAM_TOKEN_MS;
      const token = streamToken(secretKey, { formId, keyId: caller.keyId ?? '' }, expiresAt);
      return { token, expireTime: timestampFromMs(expiresAt) };
    },

    async deleteSubmission({ submissionId }, call) {
      await deleteStored(context, await projectSubmission(context, callerOf(call), submissionId), call);
      return {};
    },

    eraseSubmissions: (request, call) => eraseSubmissions(context, request, call),
  };
}

/** The form that a request names, of `projectId` if one is given, if it accepts answers from this caller. */
async function answerableForm(
  { forms, settings }: ServiceContext,
  { formId }: { formId: string },
  call: HandlerContext,
  projectId?: string,
): Promise<PublishedForm> {
  const form = await publishedForm(forms, formId, projectId);
  checkOrigin(call.requestHeader, form.version.definition.settings.allowedOrigins, settings);
  return form;
}

/** What would be refused of answers. Throws where the form takes none. */
async function violationsOf(
  context: ServiceContext,
  form: PublishedForm,
  { answers }: Pick<CheckAnswersRequest, 'answers'>,
  call: HandlerContext,
) {
  refuseIfClosed(form, context.now());
  if (answers === undefined) return [];
  checkSize(form, { answers });
  const { violations } = await checkedAnswers(context, { call, version: form.version, answers });
  return violations.map(violationToMessage);
}

async function projectSubmission(
  { database, forms }: ServiceContext,
  { projectId }: Caller,
  submissionId: string,
): Promise<Submission> {
  const submission = await requireFound('sub', submissionId, () =>
    findSubmission(database, projectId, submissionId),
  );
  // The rows of a deleted form are removed a little later than the form.
  if ((await forms.find(submission.formId)) === undefined) throw notFound('submission');
  return submission;
}

/** The events that tell of a submission. */
const typesOf = {
  accepted: ['submission.created', 'submission.completed'],
  spam: ['submission.spam'],
  replaced: ['submission.replaced'],
};
