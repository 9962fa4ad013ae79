import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { createAdaptiveWorkers } from '../../src/delivery/worker/adaptive-workers.ts';
import { until } from '../support/until.ts';

it('sends less at once while the event loop is slow, and all again after', async () => {
  const workers = createAdaptiveWorkers(64);
  const atRest = workers.current();

  while (workers.current() > 8) {
    block(200);
    await nextTurn();
  }
  await until(() => workers.current() === 64);

  expect(atRest).toBe(64);
  workers.stop();
});

it('sends less at once while the database is slow, and never nothing', async () => {
  const workers = createAdaptiveWorkers(4);

  let least = 4;
  while (least > 1) {
    await workers.measure(() => sleep(300));
    await nextTurn();
    await sleep(110);
    least = Math.min(least, workers.current());
  }
  await until(() => workers.current() === 4);

  expect(least).toBe(1);
  workers.stop();
});

function block(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}
