import { LRUCache } from 'lru-cache';
import { forEverybody } from '../store/database/read-slots.ts';

/**
 * Caches what was loaded for a second at most: changes by other processes are seen by then.
 *
 * From half of that age on it loads again in the background so that calls seldom wait for a value that is
 * in steady use. Concurrent calls share one load. `forget` makes a write of this process visible
 * at once. At most `capacity` values are kept, those used last.
 */
export function createFreshCache<V>({ load, now, capacity }: FreshCacheOptions<V>): FreshCache<V> {
  const cache = new LRUCache<string, { value: V; loadedAt: number }>({
    max: capacity,
    async fetchMethod(key) {
      // The age counts from the beginning of the load: what it reads is at least that new.
      const loadedAt = now();
      return { value: await forEverybody(() => load(key)), loadedAt };
    },
    // A load that is forgotten meanwhile still answers those who wait for it; its value is not kept.
    ignoreFetchAbort: true,
    noDeleteOnFetchRejection: true,
  });

  async function loaded(key: string): Promise<V> {
    return (await cache.forceFetch(key, { forceRefresh: true })).value;
  }

  return {
    get(key) {
      const entry = cache.get(key);
      const age = entry === undefined ? Number.NaN : now() - entry.loadedAt;
      // A clock that was set back must not keep a value alive.
      if (entry === undefined || age < 0 || age >= MAX_AGE_MS) return loaded(key);
      // A failure here is left to the call that finds the value too old.
      if (age >= RELOAD_AGE_MS) loaded(key).catch(() => {});
      return entry.value;
    },
    peek: (key) => cache.peek(key)?.value,
    forget: (key) => void cache.delete(key),
    clear: () => cache.clear(),
  };
}

/** How old status, current version and key validity may be. */
const MAX_AGE_MS = 1000;
const RELOAD_AGE_MS = 500;

export type FreshCache<V> = {
  /** The value itself if it is at hand, else a promise of it. */
  get(key: string): V | Promise<V>;
  /** The value that is kept, even one too old to use. Loads nothing. */
  peek(key: string): V | undefined;
  /** Drops a value, and whatever load of it has begun already. */
  forget: (key: string) => void;
  clear(): void;
};

export type FreshCacheOptions<V> = {
  load: (key: string) => Promise<V>;
  /** Milliseconds. */
  now: () => number;
  capacity: number;
};
