import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { afterEach, expect, it, vi } from 'vitest';
import { startServices } from '../../support/services.ts';

afterEach(() => void vi.useRealTimers());

it('says that it goes on, where there is nothing to send, also when the clock is set back', async () => {
  await using services = await startServices('pglite');
  const gone = new AbortController();
  const watching = services.submissions.watchSubmissions({}, { ...services.owner, signal: gone.signal });
  const messages = watching[Symbol.asyncIterator]();
  const first = await messages.next();

  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  const next = messages.next();
  await yieldToEventLoop();
  services.clock.ms -= 3_600_000;
  await vi.advanceTimersByTimeAsync(15_000);
  const second = await next;
  gone.abort();

  const cursor = expect.stringMatching(/^evt_/);
  expect([first, second].map(({ done, value }) => [done, value?.cursor, value?.submission])).toEqual([
    [false, cursor, undefined],
    [false, cursor, undefined],
  ]);
});
