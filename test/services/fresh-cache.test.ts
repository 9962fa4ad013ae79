import { expect, it, vi } from 'vitest';
import { createFreshCache } from '../../src/services/fresh-cache.ts';

it('gives nothing that is older than a second', async () => {
  const source = fakeSource();

  const first = await source.cache.get('a');
  source.now += 999;
  const young = await source.cache.get('a');
  source.now += 1000;
  const next = source.cache.get('a');

  expect([first, young]).toEqual(['a1', 'a1']);
  expect(next).toBeInstanceOf(Promise);
  expect(await next).not.toBe('a1');
});

it('loads again in the background, so that steady use never waits', async () => {
  const source = fakeSource();
  await source.cache.get('a');

  source.now += 600;
  const meanwhile = source.cache.get('a');
  await vi.waitFor(() => expect(source.cache.peek('a')).toBe('a2'));
  source.now += 600;
  const afterwards = source.cache.get('a');

  expect([meanwhile, afterwards]).toEqual(['a1', 'a2']);
});

it('shares one load among those who ask at once', async () => {
  const source = fakeSource();

  const all = await Promise.all([source.cache.get('a'), source.cache.get('a'), source.cache.get('a')]);

  expect(all).toEqual(['a1', 'a1', 'a1']);
});

it('forgets a load that had begun before the change', async () => {
  const source = fakeSource();

  const before = source.cache.get('a');
  source.cache.forget('a');
  const after = source.cache.get('a');
  await Promise.all([before, after]);

  expect(await source.cache.get('a')).toBe('a2');
});

it('does not remember a failure, and does not live by a clock set back', async () => {
  let fail = true;
  let now = 1_000_000;
  const cache = createFreshCache({
    load: async () => {
      if (fail) throw new Error('out of reach');
      return now;
    },
    now: () => now,
    capacity: 10,
  });

  await expect(cache.get('a')).rejects.toThrow('out of reach');
  fail = false;
  expect(await cache.get('a')).toBe(1_000_000);
  now -= 500_000;
  expect(await cache.get('a')).toBe(500_000);
});

it('keeps no more values than it may', async () => {
  const source = fakeSource(2);

  for (const key of ['a', 'b', 'c']) await source.cache.get(key);

  expect(['a', 'b', 'c'].map((key) => source.cache.peek(key))).toEqual([undefined, 'b2', 'c3']);
});

/** Loads `<key><how many loads there were>`, with a clock to move. */
function fakeSource(capacity = 10) {
  let loads = 0;
  const clock = { now: 1_000_000 };
  const load = async (key: string) => {
    loads += 1;
    return `${key}${loads}`;
  };
  return Object.assign(clock, { cache: createFreshCache({ load, now: () => clock.now, capacity }) });
}
