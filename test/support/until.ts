import { setTimeout as sleep } from 'node:timers/promises';

/** Waits until a condition holds; fails with what `state` says when it does not in time. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  withinMs = 15_000,
  state: () => string = () => 'the condition does not hold',
): Promise<void> {
  const deadline = performance.now() + withinMs;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`After ${withinMs} ms: ${state()}`);
    await sleep(10);
  }
}
