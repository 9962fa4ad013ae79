import type { MessageInitShape } from '@bufbuild/protobuf';
import type { HandlerContext } from '@connectrpc/connect';
import type {
  AwaitSessionRequest,
  AwaitSessionResponseSchema,
} from '../../../gen/headlessforms/v1/sessions_pb.js';
import { invalid } from '../../domain/errors/failure.ts';
import { waitSeconds } from '../../domain/limits/limits.ts';
import { type Caller, callerOf } from '../../rpc/context.ts';
import type { Session } from '../../store/sessions/session-table.ts';
import type { ServiceContext } from '../context.ts';
import { publishedForm } from '../forms/form-access.ts';
import { requireValidKey } from '../keys/key-reader.ts';
import { secondsProblems } from '../request-values.ts';
import { noteSession, projectSession } from './session-access.ts';
import { sessionToMessage } from './session-proto.ts';
import { createSessionWaits, type SessionWait } from './session-waits.ts';

/**
 * Makes what waits for the end of a session and returns it as it is then. It returns an open session after the
 * time-out, shortly before the caller's deadline, or when the service stops.
 *
 * Throws NOT_FOUND, INVALID for a time-out out of range, and RATE_LIMITED if too many wait.
 */
export function createAwaitSession(context: ServiceContext): AwaitSession {
  const { database } = context;
  const waits = createSessionWaits(context);

  /** Recorded here, not when the call begins: until then it has shown nothing, and thousands may wait. */
  async function answer(call: HandlerContext, session: Session) {
    noteSession(context, call, session);
    const form = await publishedForm(context.forms, session.formId);
    return { session: sessionToMessage(context, form, session) };
  }

  /**
   * Resolves with the answer once it is time for it. Thousands may wait here, so it keeps little: a `using` would keep
   * what it disposes of once more, and a function inside all that it refers to.
   */
  async function wait(sessionId: string, caller: Caller, call: HandlerContext, endsAt: number) {
    const entered = context.waits.enter(caller);
    let opened: SessionWait | undefined;
    try {
      opened = await waits.open(sessionId);
      for (;;) {
        const read = await readOpen(sessionId, caller, endsAt);
        if (typeof read === 'object') return answer(call, read);
        await opened.changed(read, call.signal);
        await requireValidKey(context, call);
      }
    } finally {
      opened?.[Symbol.dispose]();
      entered[Symbol.dispose]();
    }
  }

  /** The session if it is to be answered, else for how long it stays as it is, in milliseconds. */
  async function readOpen(sessionId: string, caller: Caller, endsAt: number): Promise<Session | number> {
    const session = await projectSession(database, caller, sessionId);
    const leftMs = endsAt - performance.now();
    if (session.status !== 'open' || leftMs <= 0 || context.stopping.aborted) return session;
    return Math.min(leftMs, session.expiresAt.getTime() - session.readAt.getTime() + 1);
  }

  return async ({ sessionId, timeout }, call) => {
    const startedAt = performance.now();
    const problems = secondsProblems(timeout, 'timeout', waitSeconds);
    if (problems.length > 0) throw invalid(problems);
    const timeoutMs = Number(timeout?.seconds ?? waitSeconds.default) * 1000;
    const deadlineMs = (call.timeoutMs() ?? Number.POSITIVE_INFINITY) - BEFORE_DEADLINE_MS;
    const caller = callerOf(call);
    const session = await projectSession(database, caller, sessionId);
    if (session.status !== 'open') return answer(call, session);
    return wait(sessionId, caller, call, startedAt + Math.min(timeoutMs, deadlineMs));
  };
}

/** For the answer to come before the caller gives up. */
const BEFORE_DEADLINE_MS = 500;

type AwaitSession = (
  request: AwaitSessionRequest,
  call: HandlerContext,
) => Promise<MessageInitShape<typeof AwaitSessionResponseSchema>>;
