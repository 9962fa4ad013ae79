import type { MessageInitShape } from '@bufbuild/protobuf';
import type { HandlerContext } from '@connectrpc/connect';
import type {
  WatchSubmissionsRequest,
  WatchSubmissionsResponseSchema,
} from '../../../gen/headlessforms/v1/submissions_pb.js';
import { callerOf } from '../../rpc/context.ts';
import type { EventHead } from '../../store/events.ts';
import { findSubmission } from '../../store/submissions/submissions.ts';
import type { ServiceContext } from '../context.ts';
import { streamEvents } from '../events/event-stream.ts';
import { submissionStatusOf, submissionToMessage } from './submission-proto.ts';

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

/** The events that tell of a submission. */
const typesOf = {
  accepted: ['submission.created', 'submission.completed'],
  spam: ['submission.spam'],
};
