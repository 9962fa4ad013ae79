import { expect, it } from 'vitest';
import { throttledWarning } from '../../src/telemetry/log.ts';

it('warns at most once in a time, says how often it has not, and goes on when the clock is set back', () => {
  const warned: object[] = [];
  const log = { debug() {}, info() {}, error() {}, warn: (facts: object) => void warned.push(facts) };
  let now = 3_600_000;
  const warn = throttledWarning(log, () => now, 1_000);

  for (const time of [3_600_000, 3_600_001, 3_600_999, 3_601_000, 0, 999]) {
    now = time;
    warn({ time }, 'Too many');
  }

  expect(warned).toEqual([{ time: 3_600_000 }, { time: 3_601_000, leftOut: 2 }, { time: 0 }]);
});
