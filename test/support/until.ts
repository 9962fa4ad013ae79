import { setTimeout as sleep } from 'node:timers/promises';

/** Waits until a condition holds and returns what it gave; fails with what `state` says if it does not in time. */
export async function until<T>(
  condition: () => T | Promise<T>,
  withinMs = 30_000,
  state: () => string = () => 'the condition does not hold',
): Promise<Exclude<Awaited<T>, Falsy>> {
  const deadline = performance.now() + withinMs;
  for (;;) {
    const value = await condition();
    if (holds(value)) return value;
    if (performance.now() > deadline) throw new Error(`After ${withinMs} ms: ${state()}`);
    await sleep(10);
  }
}

function holds<T>(value: T): value is Exclude<T, Falsy> {
  return Boolean(value);
}

type Falsy = false | null | undefined | 0 | '';
