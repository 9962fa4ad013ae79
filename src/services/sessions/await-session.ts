import type { MessageInitShape } from '@bufbuild/protobuf';
import type { HandlerContext } from '@connectrpc/connect';
import type { AwaitSessionRequest, AwaitSessionResponseSchema } from '../../../gen/forms/v1/sessions_pb.js';
import { waitSeconds } from '../../domain/limits.ts';
import { callerOf } from '../../rpc/context.ts';
import { invalid } from '../../rpc/errors.ts';
import type { ServiceContext } from '../context.ts';
import { publishedForm } from '../forms/form-access.ts';
import { requireValidKey } from '../keys/valid-key.ts';
import { secondsProblems } from '../request-values.ts';
import { ownSession } from './session-access.ts';
import { sessionToMessage } from './session-message.ts';
import { createSessionWaits } from './session-waits.ts';

/**
 * Makes what waits for the end of a session and returns it as it is then. It returns an open session after the
 * time-out, shortly before the caller's deadline, or when the service stops.
 *
 * Throws NOT_FOUND, INVALID for a time-out out of range, and RATE_LIMITED if too many wait.
 */
export function createAwaitSession(context: ServiceContext): AwaitSession {
  const waits = createSessionWaits(context);
  return async ({ sessionId, timeout }, call) => {
    const startedAt = performance.now();
    const problems = secondsProblems(timeout, 'timeout', waitSeconds);
    if (problems.length > 0) throw invalid(problems);
    const caller = callerOf(call);
    const read = () => ownSession(context.database, caller, sessionId);
    const timeoutMs = Number(timeout?.seconds ?? waitSeconds.default) * 1000;
    const deadlineMs = (call.timeoutMs() ?? Number.POSITIVE_INFINITY) - BEFORE_DEADLINE_MS;
    const endsAt = startedAt + Math.min(timeoutMs, deadlineMs);

    let session = await read();
    if (session.status === 'open') {
      using _ = context.waits.enter(caller);
      using wait = await waits.open(sessionId);
      for (;;) {
        session = await read();
        const leftMs = endsAt - performance.now();
        if (session.status !== 'open' || leftMs <= 0 || context.stopping.aborted) break;
        const openMs = session.expiresAt.getTime() - session.readAt.getTime() + 1;
        await wait.changed(Math.min(leftMs, openMs), call.signal);
        await requireValidKey(context, call);
      }
    }
    const form = await publishedForm(context.forms, session.formId);
    return { session: sessionToMessage(context, form, session) };
  };
}

/** For the answer to come before the caller gives up. */
const BEFORE_DEADLINE_MS = 500;

type AwaitSession = (
  request: AwaitSessionRequest,
  call: HandlerContext,
) => Promise<MessageInitShape<typeof AwaitSessionResponseSchema>>;
