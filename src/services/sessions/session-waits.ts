import type { ServiceContext } from '../context.ts';
import type { Following } from '../events/event-feed.ts';

/**
 * Makes what wakes those who wait for sessions: when an event says that something became of theirs, and all of them
 * when the service stops. One who waits costs an entry of a map and a timer.
 */
export function createSessionWaits({ events, stopping }: WaitsOptions): SessionWaits {
  const waiting = new Map<string, Set<() => void>>();
  let following: Promise<Following> | undefined;

  stopping.addEventListener('abort', () => {
    for (const wakes of waiting.values()) for (const wake of wakes) wake();
  });

  function follow(): Promise<Following> {
    return events.follow({
      onEvents(given) {
        for (const { sessionId } of given) {
          for (const wake of waiting.get(sessionId ?? '') ?? []) wake();
        }
      },
      onSettled() {},
    });
  }

  function remove(sessionId: string, wake: () => void): void {
    const wakes = waiting.get(sessionId);
    wakes?.delete(wake);
    if (wakes?.size === 0) waiting.delete(sessionId);
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
      let resolve = () => {};
      const wake = () => {
        hasChanged = true;
        resolve();
      };
      const wakes = waiting.get(sessionId) ?? new Set();
      waiting.set(sessionId, wakes.add(wake));
      following ??= follow().catch((error: unknown) => {
        following = undefined;
        throw error;
      });
      try {
        await following;
      } catch (error) {
        remove(sessionId, wake);
        throw error;
      }
      return {
        changed(ms, signal) {
          return new Promise((done, failed) => {
            const timer = setTimeout(wake, ms);
            resolve = () => {
              resolve = () => {};
              clearTimeout(timer);
              signal.removeEventListener('abort', wake);
              hasChanged = false;
              if (signal.aborted) failed(signal.reason);
              else done();
            };
            signal.addEventListener('abort', wake);
            if (hasChanged || signal.aborted) resolve();
          });
        },
        [Symbol.dispose]: () => remove(sessionId, wake),
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
