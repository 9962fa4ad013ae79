import { type AwaitSessionResponse, SessionStatus } from '../../../gen/headlessforms/v1/sessions_pb.js';
import type { FormsClient } from './client.ts';

/**
 * Waits until a session has ended: submitted, declined, expired or cancelled. Returns it with its submission, if there
 * is one and the key may read it.
 *
 * Throws the reason of `signal` when that aborts. A session expires by itself, so that the wait ends without one.
 */
export async function waitForSession(
  { sessions }: Pick<FormsClient, 'sessions'>,
  sessionId: string,
  { signal }: { signal?: AbortSignal } = {},
): Promise<AwaitSessionResponse> {
  for (;;) {
    const reply = await sessions.awaitSession(
      { sessionId, timeout: { seconds: MAX_WAIT_SECONDS } },
      { ...(signal && { signal }) },
    );
    if (reply.session?.status !== SessionStatus.OPEN) return reply;
  }
}

/** The longest that one call waits. */
const MAX_WAIT_SECONDS = 60n;
