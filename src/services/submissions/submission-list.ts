import { timestampMs } from '@bufbuild/protobuf/wkt';
import { Reason } from '../../../gen/forms/v1/errors_pb.js';
import { type ListSubmissionsRequest, SubmissionStatus } from '../../../gen/forms/v1/submissions_pb.js';
import { isId, smallestIdAt } from '../../domain/ids.ts';
import { textProblem } from '../../domain/text.ts';
import type { Caller } from '../../rpc/context.ts';
import { failed, notFound } from '../../rpc/errors.ts';
import { listSubmissions as listStored, type SubmissionFilter } from '../../store/submissions.ts';
import type { ServiceContext } from '../context.ts';
import { pageAsked } from '../paging.ts';
import { submissionToMessage } from './submission-message.ts';

/** Lists a form's submissions, newest first. A form of another project is not there. */
export async function listSubmissions(
  context: ServiceContext,
  request: ListSubmissionsRequest,
  caller: Caller,
) {
  await ownForm(context, request.formId, caller);
  if (request.skip < 0) throw badParameter('offset', 'Expected a whole number from 0');
  const page = { ...pageAsked(request, 'sub'), offset: request.skip };
  const filter = filterOf(request);
  if (request.sessionId !== '' && !isId('sess', request.sessionId)) return { submissions: [] };

  const { items, nextCursor } = await listStored(context.database, request.formId, filter, page);
  return { submissions: items.map(submissionToMessage), nextPageToken: nextCursor ?? '' };
}

/** Throws unless the form is of the caller's project, in whatever status. */
export async function ownForm(context: ServiceContext, formId: string, caller: Caller): Promise<void> {
  const form = await context.forms.find(formId);
  if (form?.projectId !== caller.projectId) throw notFound('form');
}

function filterOf(request: ListSubmissionsRequest): SubmissionFilter {
  const { sessionId, source, createdAfter, createdBefore } = request;
  if (textProblem(source) !== undefined) throw badParameter('source', 'Expected well-formed text');
  return {
    status: statusOf(request.status),
    ...(sessionId !== '' && { sessionId }),
    ...(source !== '' && { source }),
    ...(createdAfter !== undefined && { afterId: smallestIdAt('sub', timestampMs(createdAfter)) }),
    ...(createdBefore !== undefined && { beforeId: smallestIdAt('sub', timestampMs(createdBefore)) }),
  };
}

function statusOf(status: SubmissionStatus): 'accepted' | 'spam' {
  switch (status) {
    case SubmissionStatus.UNSPECIFIED:
    case SubmissionStatus.ACCEPTED:
      return 'accepted';
    case SubmissionStatus.SPAM:
      return 'spam';
    default:
      throw badParameter('status', 'Expected accepted or spam');
  }
}

function badParameter(path: string, message: string) {
  return failed(Reason.BAD_REQUEST, `${path}: ${message}`, {
    violations: [{ path, code: 'custom', message }],
  });
}
