import { forEverybody } from '../store/database/read-queue.ts';

/**
 * Caches what was loaded for a second at most: changes by other processes are seen by then.
 *
 * From half of that age on it loads again in the background so that calls seldom wait for a value that is
 * in steady use. Concurrent calls share one load. `forget` makes a write of this process visible
 * at once. At most `capacity` values are kept.
 */
export function createFreshCache<V>(options: FreshCacheOptions<V>): FreshCache<V> {
  const { load, now, capacity } = options;
  const entries = new Map<string, { value: V; loadedAt: number }>();
  const loading = new Map<string, Promise<V>>();

  function startLoad(key: string): Promise<V> {
    // The age counts from the beginning of the load: what it reads is at least that new.
    const loadedAt = now();
    const promise = forEverybody(() => load(key)).then(
      (value) => {
        if (loading.get(key) === promise) {
          loading.delete(key);
          keep(key, { value, loadedAt });
        }
        return value;
      },
      (error: unknown) => {
        if (loading.get(key) === promise) loading.delete(key);
        throw error;
      },
    );
    loading.set(key, promise);
    return promise;
  }

  function keep(key: string, entry: { value: V; loadedAt: number }): void {
    entries.delete(key);
    entries.set(key, entry);
    const [oldest] = entries.keys();
    if (entries.size > capacity && oldest !== undefined) entries.delete(oldest);
  }

  return {
    get(key) {
      const entry = entries.get(key);
      const age = entry === undefined ? Number.NaN : now() - entry.loadedAt;
      // A clock that was set back must not keep a value alive.
      if (entry === undefined || age < 0 || age >= MAX_AGE_MS) return loading.get(key) ?? startLoad(key);
      // A failure here is left to the call that finds the value too old.
      if (age >= RELOAD_AGE_MS && !loading.has(key)) startLoad(key).catch(() => {});
      return entry.value;
    },
    peek: (key) => entries.get(key)?.value,
    forget(key) {
      entries.delete(key);
      loading.delete(key);
    },
    clear() {
      entries.clear();
      loading.clear();
    },
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
