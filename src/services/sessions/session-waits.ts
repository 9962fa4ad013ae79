import type { ServiceContext } from '../context.ts';
import type { Following } from '../events/event-feed.ts';

/**
 * Makes what wakes those who wait for sessions: when an event says that something became of theirs, and all of them
 * when the service stops. One who waits costs an entry of a map and a timer.
 */
export function createSessionWaits({ events, stopping }: WaitsOptions): SessionWaits {
  const waiting = new Map<string, Wait>();
  let following: Promise<Following> | undefined;

  stopping.addEventListener('abort', () => {
    for (const sessionId of waiting.keys()) wakeAll(sessionId);
  });

  function wakeAll(sessionId: string): void {
    for (let wait = waiting.get(sessionId); wait !== undefined; wait = wait.next) wait.wake();
  }

  function follow(): Promise<Following> {
    return events.follow({
      onEvents(given) {
        for (const { sessionId } of given) wakeAll(sessionId ?? '');
      },
      onSettled() {},
    });
  }

  function remove(removed: Wait): void {
    const { sessionId } = removed;
    const first = waiting.get(sessionId);
    if (first === removed) {
      if (removed.next === undefined) waiting.delete(sessionId);
      else waiting.set(sessionId, removed.next);
    } else {
      let before = first;
      while (before !== undefined && before.next !== removed) before = before.next;
      if (before !== undefined) before.next = removed.next;
    }
    if (waiting.size > 0) return;
    following?.then(
      (followed) => followed[Symbol.dispose](),
      () => undefined,
    );
    following = undefined;
  }

  return {
    async open(sessionId) {
      const wait = new Wait(sessionId, waiting.get(sessionId), remove);
      waiting.set(sessionId, wait);
      following ??= follow().catch((error: unknown) => {
        following = undefined;
        throw error;
      });
      try {
        await following;
      } catch (error) {
        remove(wait);
        throw error;
      }
      return wait;
    },
  };
}

/**
 * One who waits, once at a time. Those of the same session are a list: nearly always there is one. Thousands are kept,
 * so what a wait needs is in one object rather than in functions of its own.
 */
class Wait implements SessionWait {
  readonly sessionId: string;
  next: Wait | undefined;
  readonly #remove: (wait: Wait) => void;
  /** What ends it, for all that do. */
  readonly #end = () => {
    clearTimeout(this.#timer);
    this.#signal?.removeEventListener('abort', this.#end);
    this.#hasChanged = false;
    this.#resolve?.(this.#signal?.aborted ? Promise.reject(this.#signal.reason) : undefined);
    this.#resolve = undefined;
  };
  #hasChanged = false;
  #resolve: ((changed: Promise<void> | undefined) => void) | undefined;
  #signal: AbortSignal | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(sessionId: string, next: Wait | undefined, remove: (wait: Wait) => void) {
    this.sessionId = sessionId;
    this.next = next;
    this.#remove = remove;
  }

  wake(): void {
    this.#hasChanged = true;
    if (this.#resolve !== undefined) this.#end();
  }

  changed(ms: number, signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#resolve = resolve;
    this.#signal = signal;
    this.#timer = setTimeout(this.#end, ms);
    signal.addEventListener('abort', this.#end);
    if (this.#hasChanged || signal.aborted) this.#end();
    return promise;
  }

  [Symbol.dispose](): void {
    this.#remove(this);
  }
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
