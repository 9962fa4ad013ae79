import { expect, it } from 'vitest';
import { createWindowCounter } from '../../../src/domain/limits/window-counter.ts';

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
  expect(counter.count('b')).toEqual({ hits: 2, endsInMs: 30_000 });
});

it('begins again when the clock was set back, and not only when that time has come once more', () => {
  let now = 3_600_000;
  const counter = createWindowCounter({ now: () => now });

  counter.count('a');
  now = 0;

  expect(counter.count('a')).toEqual({ hits: 1, endsInMs: 60_000 });
  expect(counter.count('a')).toEqual({ hits: 2, endsInMs: 60_000 });
});

it('takes back what was counted, and never more', () => {
  const counter = createWindowCounter({ now: () => 0 });

  for (let call = 0; call < 3; call += 1) counter.count('a');
  counter.takeBack('a');
  counter.takeBack('b');

  expect(counter.count('a').hits).toBe(3);
  expect(counter.count('b').hits).toBe(1);
  for (let call = 0; call < 5; call += 1) counter.takeBack('b');
  expect(counter.count('b').hits).toBe(1);
});

it('holds a bounded number of keys, and forgets the oldest windows first', () => {
  const counter = createWindowCounter({ now: () => 0, capacity: 1000 });

  for (let client = 0; client < 5000; client += 1) counter.count(`client ${client}`);

  expect(counter.count('client 4999').hits).toBe(2);
  expect(counter.count('client 4001').hits).toBe(2);
  expect(counter.count('client 0').hits).toBe(1);
});
