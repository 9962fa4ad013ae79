import type { MessageInitShape } from '@bufbuild/protobuf';
import type { CallOptions, Client } from '@connectrpc/connect';
import {
  HostedGoal,
  type HostedService,
  type PostHostedRequestSchema,
} from '../../gen/headlessforms/internal/v1/hosted_pb.js';

/** What a page can be posted for: to save what is typed, to submit all steps at once, and to start over. */
export function postsOf(hosted: Client<typeof HostedService>) {
  const postFor = (goal: HostedGoal) => (request: Posted, options?: CallOptions) =>
    hosted.postHosted({ page: BEHIND_ALL, ...request, goal }, options);
  return {
    save: postFor(HostedGoal.SAVE),
    submit: postFor(HostedGoal.FORWARD),
    startOver: postFor(HostedGoal.RESTART),
  };
}

/** A form has at most 100 steps, and one that shows all answers. */
const BEHIND_ALL = 102;

type Posted = Omit<MessageInitShape<typeof PostHostedRequestSchema>, '$typeName'>;
