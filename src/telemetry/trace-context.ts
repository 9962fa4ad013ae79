import { AsyncLocalStorage } from 'node:async_hooks';

/**
 * The span for which this code runs, as W3C's `traceparent` writes it, to be stored or sent; undefined if nothing is
 * recorded.
 */
export function currentTraceparent(): string | undefined {
  return storage.getStore();
}

/** Runs work, and what it starts, for a span. Undefined: for none, as background work that a request has woken. */
export function runWith<T>(traceparent: string | undefined, work: () => T): T {
  return storage.getStore() === traceparent ? work() : storage.run(traceparent, work);
}

/** The trace of a `traceparent`, by which to find it. */
export function traceIdOf(traceparent: string | undefined): string | undefined {
  return traceparent?.split('-', 2)[1];
}

/** Costs nothing as long as no span is recorded. */
const storage = new AsyncLocalStorage<string | undefined>();
