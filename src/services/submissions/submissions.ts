import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import type {
  CreateDemoSubmissionRequest,
  CreateSubmissionRequest,
  DeleteSubmissionRequest,
  GetSubmissionRequest,
  SubmissionsService,
} from '../../../gen/forms/v1/submissions_pb.js';
import { demoFormId, isId } from '../../domain/ids.ts';
import { type Caller, callerOf } from '../../rpc/context.ts';
import { notFound } from '../../rpc/errors.ts';
import { removeSubmission } from '../../store/removals.ts';
import { findSubmission, type Submission } from '../../store/submissions.ts';
import { listUploadIds } from '../../store/uploads.ts';
import type { ServiceContext } from '../context.ts';
import { publishedForm } from '../forms/form-gate.ts';
import { endingOf } from './completion.ts';
import { exportSubmissions } from './export.ts';
import { checkOrigin, followable } from './origins.ts';
import { listSubmissions } from './submission-list.ts';
import { submissionToMessage } from './submission-message.ts';
import { acceptRequest, readRequest } from './submission-request.ts';

/** Accepts the answers people give to a form, and reads them back. */
export function submissionsService(service: ServiceContext): ServiceImpl<typeof SubmissionsService> {
  return {
    createSubmission: (request, context) => createSubmission(service, request, context),
    createDemoSubmission: (request) => createDemoSubmission(service, request),
    getSubmission: (request, context) => getSubmission(service, request, callerOf(context)),
    listSubmissions: (request, context) => listSubmissions(service, request, callerOf(context)),
    exportSubmissions: (request, context) =>
      exportSubmissions(service, request, callerOf(context), context.signal),
    deleteSubmission: (request, context) => deleteSubmission(service, request, callerOf(context)),
  };
}

/** The hot path: its reads come from memory, and its one write is grouped with others'. */
async function createSubmission(
  service: ServiceContext,
  request: CreateSubmissionRequest,
  context: HandlerContext,
) {
  const projectId = request.managed ? callerOf(context).projectId : undefined;
  const form = await publishedForm(service.forms, request.formId, projectId);
  const { definition } = form.version;
  const { allowedOrigins } = definition.settings;
  checkOrigin(context.requestHeader, allowedOrigins, service.settings);

  const { submissionId, answers } = await acceptRequest(service, form, readRequest(request, form));
  if (request.inputs.length === 0) return { submissionId };
  const redirectUrl = followable(request.nextUrl, context.requestHeader, allowedOrigins);
  return {
    submissionId,
    ending: endingOf(definition, answers, { redirectUrl, requestHeader: context.requestHeader }),
  };
}

/** Needs no origin: the demo is for everybody, and what it stores goes to the operator alone. */
async function createDemoSubmission(
  service: ServiceContext,
  { answers, source }: CreateDemoSubmissionRequest,
) {
  const form = await publishedForm(service.forms, demoFormId);
  const request = readRequest({ answers, source: source === '' ? 'demo' : source }, form);
  const { submissionId } = await acceptRequest(service, form, request);
  return { submissionId };
}

async function getSubmission(
  service: ServiceContext,
  { submissionId }: GetSubmissionRequest,
  caller: Caller,
) {
  return { submission: submissionToMessage(await ownSubmission(service, submissionId, caller)) };
}

/** Files go first: if the process dies in between, calling again removes the rest. */
async function deleteSubmission(
  service: ServiceContext,
  { submissionId }: DeleteSubmissionRequest,
  caller: Caller,
) {
  const { id, formId } = await ownSubmission(service, submissionId, caller);
  for (const uploadId of await listUploadIds(service.database, id)) await service.uploads.remove(uploadId);
  const removed = await service.database.transaction((tx) => removeSubmission(tx, caller.projectId, id));
  if (removed === null) throw notFound('submission');
  service.forms.forget(formId);
  return {};
}

async function ownSubmission(
  service: ServiceContext,
  submissionId: string,
  caller: Caller,
): Promise<Submission> {
  const submission = isId('sub', submissionId)
    ? await findSubmission(service.database, caller.projectId, submissionId)
    : null;
  if (submission === null) throw notFound('submission');
  return submission;
}
