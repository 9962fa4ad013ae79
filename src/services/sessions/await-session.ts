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
import type { Following } from '../events/event-feed.ts';
import { requireValidKey } from '../keys/key-reader.ts';
import { secondsProblems } from '../request-values.ts';
import { describeRead } from './describe-session.ts';
import { projectSession } from './find-session.ts';

/**
 * Makes the wait for the end of a session and returns it as it is then. It returns an open session after the
 * time-out, shortly before the caller's deadline, or when the service stops.
 *
 * Throws NOT_FOUND, INVALID for a time-out out of range, and RATE_LIMITED if too many wait.
 */
export function createAwaitSession(context: ServiceContext): AwaitSession {
  const waits = createSessionWaits(context);

  /** Recorded here, not when the call begins: until then it has shown nothing, and thousands may wait. */
  const answer = (call: HandlerContext, session: Session) => describeRead(context, call, session);

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
    const session = await projectSession(context, caller, sessionId);
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
    const session = await projectSession(context, caller, sessionId);
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

/**
 * Makes what wakes those who wait for sessions: when an event says that something became of theirs, and all of them
 * when the service stops. Thousands may wait: each costs an entry of a map, a few small functions and a timer.
 */
export function createSessionWaits({ events, stopping }: WaitsOptions): SessionWaits {
  const waiting = new Map<string, Set<() => void>>();
  let following: Promise<Following> | undefined;

  stopping.addEventListener('abort', () => {
    for (const sessionId of waiting.keys()) wake(sessionId);
  });

  function wake(sessionId: string | null): void {
    for (const notice of waiting.get(sessionId ?? '') ?? []) notice();
  }

  async function follow(): Promise<void> {
    following ??= events.follow({
      onEvents: (given) => {
        for (const { sessionId } of given) wake(sessionId);
      },
    });
    try {
      await following;
    } catch (error) {
      following = undefined;
      throw error;
    }
  }

  function remove(sessionId: string, notice: () => void): void {
    const others = waiting.get(sessionId);
    others?.delete(notice);
    if (others?.size === 0) waiting.delete(sessionId);
    if (waiting.size > 0) return;
    following?.then(
      (followed) => followed[Symbol.dispose](),
      () => undefined,
    );
    following = undefined;
  }

  return {
    async open(sessionId) {
      let hasChanged = false;
      let end: (() => void) | undefined;
      const notice = () => {
        hasChanged = true;
        end?.();
      };
      waiting.set(sessionId, (waiting.get(sessionId) ?? new Set()).add(notice));
      try {
        await follow();
      } catch (error) {
        remove(sessionId, notice);
        throw error;
      }
      return {
        async changed(ms, signal) {
          if (!hasChanged && !signal.aborted) {
            const ended = Promise.withResolvers<void>();
            const timer = setTimeout(ended.resolve, ms);
            end = ended.resolve;
            signal.addEventListener('abort', end);
            await ended.promise;
            clearTimeout(timer);
            signal.removeEventListener('abort', end);
          }
          hasChanged = false;
          signal.throwIfAborted();
        },
        [Symbol.dispose]: () => remove(sessionId, notice),
      };
    },
  };
}

export type SessionWaits = {
  /** Notices what becomes of a session from then on, until it is disposed of. */
  open(sessionId: string): Promise<SessionWait>;
};

type SessionWait = Disposable & {
  /**
   * Resolves when something became of the session since the last call, or the service stops, at the latest after
   * `ms`. Rejects when the signal is aborted.
   */
  changed(ms: number, signal: AbortSignal): Promise<void>;
};

type WaitsOptions = Pick<ServiceContext, 'events' | 'stopping'>;
