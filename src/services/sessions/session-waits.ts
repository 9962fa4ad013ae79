import type { ServiceContext } from '../context.ts';
import type { Following } from '../events/event-feed.ts';

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
      onSettled() {},
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

export type SessionWait = Disposable & {
  /**
   * Resolves when something became of the session since the last call, or the service stops, at the latest after
   * `ms`. Rejects when the signal is aborted.
   */
  changed(ms: number, signal: AbortSignal): Promise<void>;
};

type WaitsOptions = Pick<ServiceContext, 'events' | 'stopping'>;
