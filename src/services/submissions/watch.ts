import type { MessageInitShape } from '@bufbuild/protobuf';
import type { HandlerContext } from '@connectrpc/connect';
import {
  SubmissionStatus,
  type WatchSubmissionsRequest,
  type WatchSubmissionsResponseSchema,
} from '../../../gen/forms/v1/submissions_pb.js';
import { callerOf } from '../../rpc/context.ts';
import type { EventHead } from '../../store/events.ts';
import { findSubmission } from '../../store/submissions/submissions.ts';
import type { ServiceContext } from '../context.ts';
import { streamEvents } from '../events/event-stream.ts';
import { badParameter } from '../request-values.ts';
import { submissionToMessage } from './submission-message.ts';

/** Streams the submissions of a form, or of the caller's project, as they come. */
export async function* watchSubmissions(
  { database, ...context }: ServiceContext,
  { formId, source, status, cursor }: WatchSubmissionsRequest,
  call: HandlerContext,
): AsyncGenerator<MessageInitShape<typeof WatchSubmissionsResponseSchema>> {
  const { projectId } = callerOf(call);
  const types = typesOf[submissionStatusOf(status)];
  const find = async ({ id, submissionId }: EventHead) => {
    const found = submissionId === null ? null : await findSubmission(database, projectId, submissionId);
    const isWanted = found !== null && (source === '' || found.source === source);
    return isWanted ? [[id, submissionToMessage(found)] as const] : [];
  };
  const messages = streamEvents({ database, ...context }, call, {
    formId,
    cursor,
    types,
    load: async (events) => new Map((await Promise.all(events.map(find))).flat()),
  });
  for await (const { cursor: next, item: submission } of messages) {
    yield submission === undefined ? { cursor: next } : { cursor: next, submission };
  }
}

/** The status that submissions are asked for by. Throws for one that this version does not know. */
export function submissionStatusOf(status: SubmissionStatus): 'accepted' | 'spam' {
  switch (status) {
    case SubmissionStatus.UNSPECIFIED:
    case SubmissionStatus.ACCEPTED:
      return 'accepted';
    case SubmissionStatus.SPAM:
      return 'spam';
    default:
      throw badParameter('status', 'custom', 'Expected accepted or spam');
  }
}

/** The events that tell of a submission. */
const typesOf = {
  accepted: ['submission.created', 'submission.completed'],
  spam: ['submission.spam'],
};
