import { expect, it } from 'vitest';
import { createWindowCounter } from '../../src/domain/window-counter.ts';

it('counts each key by itself, and begins again after a minute', () => {
  let now = 0;
  const counter = createWindowCounter({ now: () => now });

  counter.count('a');
  now = 30_000;
  const second = counter.count('a');
  const other = counter.count('b');
  now = 60_000;
  const renewed = counter.count('a');

  expect(second).toEqual({ hits: 2, endsInMs: 30_000 });
  expect(other).toEqual({ hits: 1, endsInMs: 60_000 });
  expect(renewed).toEqual({ hits: 1, endsInMs: 60_000 });
  expect(counter.peek('b')).toEqual({ hits: 1, endsInMs: 30_000 });
});

it('holds a bounded number of keys, and forgets the oldest windows first', () => {
  const counter = createWindowCounter({ now: () => 0, capacity: 1000 });

  for (let client = 0; client < 5000; client += 1) counter.count(`client ${client}`);

  expect(counter.peek('client 0').hits).toBe(0);
  expect(counter.peek('client 4999').hits).toBe(1);
  expect(counter.peek('client 4001').hits).toBe(1);
});
