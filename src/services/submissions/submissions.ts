import { timestampMs } from '@bufbuild/protobuf/wkt';
import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import type {
  CheckAnswersRequest,
  CreateDemoSubmissionRequest,
  CreateSubmissionRequest,
  DeleteSubmissionRequest,
  GetSubmissionRequest,
  ListSubmissionsRequest,
  SubmissionsService,
} from '../../../gen/forms/v1/submissions_pb.js';
import { violationToMessage } from '../../domain/errors/violation-message.ts';
import { demoFormId, isId, smallestIdAt } from '../../domain/ids.ts';
import { textProblem } from '../../domain/json/well-formed.ts';
import { type Caller, callerOf } from '../../rpc/context.ts';
import { notFound } from '../../rpc/errors.ts';
import {
  listSubmissions as listStored,
  type SubmissionFilter,
} from '../../store/submissions/submission-pages.ts';
import { findSubmission, type Submission } from '../../store/submissions/submissions.ts';
import type { ServiceContext } from '../context.ts';
import { type PublishedForm, publishedForm, refuseIfClosed, requireOwnForm } from '../forms/form-access.ts';
import { badParameter, pageRequestOf } from '../request-values.ts';
import { checkedAnswers, checkSize } from './accept-answers.ts';
import { deleteStored } from './deletion.ts';
import { eraseSubmissions } from './erasure.ts';
import { exportSubmissions } from './export.ts';
import { checkOrigin } from './origins.ts';
import { submissionToMessage } from './submission-message.ts';
import { acceptRequest, readRequest } from './submission-request.ts';
import { submissionStatusOf, watchSubmissions } from './watch.ts';

/** Accepts the answers people give to a form, and reads them back. */
export function submissionsService(context: ServiceContext): ServiceImpl<typeof SubmissionsService> {
  return {
    createSubmission: (request, call) => createSubmission(context, request, call),
    async createManagedSubmission(request, call) {
      const form = await answerableForm(context, request, call, callerOf(call).projectId);
      const { submissionId } = await acceptRequest(context, form, readRequest(request, form), call);
      return { submissionId };
    },
    async checkAnswers(request, call) {
      const form = await answerableForm(context, request, call);
      return { violations: await violationsOf(context, form, request) };
    },
    async checkManagedAnswers(request, call) {
      const form = await answerableForm(context, request, call, callerOf(call).projectId);
      return { violations: await violationsOf(context, form, request) };
    },
    createDemoSubmission: (request, call) => createDemoSubmission(context, request, call),
    getSubmission: (request, call) => getSubmission(context, request, call),
    listSubmissions: (request, call) => listSubmissions(context, request, call),
    exportSubmissions: (request, call) => exportSubmissions(context, request, call),
    watchSubmissions: (request, call) => watchSubmissions(context, request, call),
    deleteSubmission: (request, call) => deleteSubmission(context, request, call),
    eraseSubmissions: (request, call) => eraseSubmissions(context, request, call),
  };
}

/** The hot path: it reads from caches, and its one write is grouped with others'. */
async function createSubmission(
  context: ServiceContext,
  request: CreateSubmissionRequest,
  call: HandlerContext,
) {
  const form = await answerableForm(context, request, call);
  const { submissionId } = await acceptRequest(context, form, readRequest(request, form), call);
  return { submissionId };
}

/** The form that a request names, of `projectId` if one is given, if it takes answers from this caller. */
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
) {
  refuseIfClosed(form, context.now());
  if (answers === undefined) return [];
  checkSize(form, { answers });
  const { violations } = await checkedAnswers(context, { version: form.version, answers });
  return violations.map(violationToMessage);
}

/** The origin is not checked: anybody may try the demo, and its submissions go to the operator alone. */
async function createDemoSubmission(
  context: ServiceContext,
  { answers, source, idempotencyKey }: CreateDemoSubmissionRequest,
  call: HandlerContext,
) {
  const form = await publishedForm(context.forms, demoFormId);
  const request = readRequest({ answers, source: source === '' ? 'demo' : source, idempotencyKey }, form);
  const { submissionId } = await acceptRequest(context, form, request, call);
  return { submissionId };
}

async function getSubmission(
  context: ServiceContext,
  { submissionId }: GetSubmissionRequest,
  call: HandlerContext,
) {
  const submission = await ownSubmission(context, callerOf(call), submissionId);
  context.audit.note(call, { resource: submissionId, formId: submission.formId });
  return { submission: submissionToMessage(submission) };
}

/** Lists a form's submissions, newest first. A form of another project is not there. */
async function listSubmissions(
  context: ServiceContext,
  request: ListSubmissionsRequest,
  call: HandlerContext,
) {
  await requireOwnForm(context.forms, callerOf(call), request.formId);
  if (request.skip < 0) throw badParameter('skip', 'custom', 'Expected a whole number from 0');
  const page = { ...pageRequestOf(request, 'sub'), offset: request.skip };
  const filter = filterOf(request);
  if (request.sessionId !== '' && !isId('sess', request.sessionId)) return { submissions: [] };

  const { items, nextCursor } = await listStored(context.database, request.formId, filter, page);
  context.audit.note(call, { formId: request.formId });
  return { submissions: items.map(submissionToMessage), nextPageToken: nextCursor ?? '' };
}

function filterOf(request: ListSubmissionsRequest): SubmissionFilter {
  const { sessionId, source, createdAfter, createdBefore } = request;
  if (textProblem(source) !== undefined) throw badParameter('source', 'custom', 'Expected well-formed text');
  return {
    status: submissionStatusOf(request.status),
    ...(sessionId !== '' && { sessionId }),
    ...(source !== '' && { source }),
    ...(createdAfter !== undefined && { afterId: smallestIdAt('sub', timestampMs(createdAfter)) }),
    ...(createdBefore !== undefined && { beforeId: smallestIdAt('sub', timestampMs(createdBefore)) }),
  };
}

async function deleteSubmission(
  context: ServiceContext,
  { submissionId }: DeleteSubmissionRequest,
  call: HandlerContext,
) {
  await deleteStored(context, await ownSubmission(context, callerOf(call), submissionId), call);
  return {};
}

async function ownSubmission(
  context: ServiceContext,
  caller: Caller,
  submissionId: string,
): Promise<Submission> {
  const submission = isId('sub', submissionId)
    ? await findSubmission(context.database, caller.projectId, submissionId)
    : null;
  if (submission === null) throw notFound('submission');
  // The rows of a deleted form are removed a little later than the form.
  if ((await context.forms.find(submission.formId)) === undefined) throw notFound('submission');
  return submission;
}
