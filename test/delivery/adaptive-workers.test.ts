import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { createAdaptiveWorkers } from '../../src/delivery/worker/adaptive-workers.ts';

/** What a tenth of a second takes that is on time. */
const TICK_MS = 100;

/** By the clock that lateness is measured with. */
let nowMs: number;

beforeEach(() => {
  nowMs = 0;
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

it('sends less at once while the event loop is slow, and all again two seconds after', async () => {
  const workers = createAdaptiveWorkers(64);
  await workers.measure(async () => undefined);
  const atRest = workers.current();

  for (let ticks = 0; ticks < 10; ticks += 1) pass({ lateMs: 60 });
  const least = workers.current();
  for (let ticks = 0; ticks < 20; ticks += 1) pass();

  expect([atRest, least, workers.current()]).toEqual([64, 8, 64]);
  workers.stop();
});

it('sends less at once while the database is slow, and never nothing', async () => {
  const workers = createAdaptiveWorkers(4);
  const tickWith = async (databaseMs: number) => {
    const begun = nowMs;
    await workers.measure(async () => {
      nowMs = begun + databaseMs;
    });
    // The event loop is on time all the while.
    nowMs = begun;
    pass();
  };

  for (let ticks = 0; ticks < 10; ticks += 1) await tickWith(300);
  const least = workers.current();
  for (let ticks = 0; ticks < 20; ticks += 1) await tickWith(40);

  expect([least, workers.current()]).toEqual([1, 4]);
  workers.stop();
});

it('ticks only while there is something to deliver', async () => {
  const workers = createAdaptiveWorkers(64);
  const atRest = vi.getTimerCount();

  await workers.measure(async () => undefined);
  pass();
  const inUse = vi.getTimerCount();
  for (let ticks = 0; ticks < 60; ticks += 1) pass();
  const unused = vi.getTimerCount();
  // Time without a tick is not lateness.
  nowMs += 60_000;
  await workers.measure(async () => undefined);
  pass();

  expect([atRest, inUse, unused, vi.getTimerCount()]).toEqual([0, 1, 0, 1]);
  expect(workers.current()).toBe(64);
  workers.stop();
});

/** Lets a tick of the event loop come, so late. */
function pass({ lateMs = 0 } = {}): void {
  nowMs += TICK_MS + lateMs;
  vi.advanceTimersByTime(TICK_MS);
}
