import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import type {
  CreateDemoSubmissionRequest,
  CreateSubmissionRequest,
  DeleteSubmissionRequest,
  GetSubmissionRequest,
  SubmissionsService,
} from '../../gen/forms/v1/submissions_pb.js';
import { demoFormId, isId } from '../domain/ids.ts';
import { removeSubmission } from '../store/removals.ts';
import { findSubmission, type Submission } from '../store/submissions.ts';
import { listUploadIds } from '../store/uploads.ts';
import { type Caller, callerOf } from './calls/context.ts';
import { notFound } from './calls/errors.ts';
import type { Shared } from './deps.ts';
import { endingOf } from './endings.ts';
import { exportSubmissions } from './export.ts';
import { publishedForm } from './form-gate.ts';
import { checkOrigin, followable } from './origins.ts';
import { listSubmissions } from './submission-list.ts';
import { submissionToMessage } from './submission-message.ts';
import { acceptRequest, readRequest } from './submission-request.ts';

/** Accepts the answers people give to a form, and reads them back. */
export function submissionsService(deps: Shared): ServiceImpl<typeof SubmissionsService> {
  return {
    createSubmission: (request, context) => createSubmission(deps, request, context),
    createDemoSubmission: (request) => createDemoSubmission(deps, request),
    getSubmission: (request, context) => getSubmission(deps, request, callerOf(context)),
    listSubmissions: (request, context) => listSubmissions(deps, request, callerOf(context)),
    exportSubmissions: (request, context) =>
      exportSubmissions(deps, request, callerOf(context), context.signal),
    deleteSubmission: (request, context) => deleteSubmission(deps, request, callerOf(context)),
  };
}

/** The hot path: its reads come from memory, and its one write is grouped with others'. */
async function createSubmission(deps: Shared, request: CreateSubmissionRequest, context: HandlerContext) {
  const projectId = request.managed ? callerOf(context).projectId : undefined;
  const form = await publishedForm(deps.forms, request.formId, projectId);
  const { definition } = form.version;
  const { allowedOrigins } = definition.settings;
  checkOrigin(context.requestHeader, allowedOrigins, deps.settings);

  const { submissionId, answers } = await acceptRequest(deps, form, readRequest(request, form));
  if (request.inputs.length === 0) return { submissionId };
  const redirectUrl = followable(request.nextUrl, context.requestHeader, allowedOrigins);
  return {
    submissionId,
    ending: endingOf(definition, answers, { redirectUrl, requestHeader: context.requestHeader }),
  };
}

/** Needs no origin: the demo is for everybody, and what it stores goes to the operator alone. */
async function createDemoSubmission(deps: Shared, { answers, source }: CreateDemoSubmissionRequest) {
  const form = await publishedForm(deps.forms, demoFormId);
  const request = readRequest({ answers, source: source === '' ? 'demo' : source }, form);
  const { submissionId } = await acceptRequest(deps, form, request);
  return { submissionId };
}

async function getSubmission(deps: Shared, { submissionId }: GetSubmissionRequest, caller: Caller) {
  return { submission: submissionToMessage(await ownSubmission(deps, submissionId, caller)) };
}

/** Files go first: if the process dies in between, calling again removes the rest. */
async function deleteSubmission(deps: Shared, { submissionId }: DeleteSubmissionRequest, caller: Caller) {
  const { id, formId } = await ownSubmission(deps, submissionId, caller);
  for (const uploadId of await listUploadIds(deps.database, id)) await deps.uploads.remove(uploadId);
  const removed = await deps.database.transaction((tx) => removeSubmission(tx, caller.projectId, id));
  if (removed === null) throw notFound('submission');
  deps.forms.forget(formId);
  return {};
}

async function ownSubmission(deps: Shared, submissionId: string, caller: Caller): Promise<Submission> {
  const submission = isId('sub', submissionId)
    ? await findSubmission(deps.database, caller.projectId, submissionId)
    : null;
  if (submission === null) throw notFound('submission');
  return submission;
}
