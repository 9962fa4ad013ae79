import { afterEach, expect, it, vi } from 'vitest';
import { inTimeSlice } from '../../src/admission/time-slice.ts';

afterEach(() => vi.restoreAllMocks());

it.each([
  ['that takes long is done alone in a turn of the event loop', 6, [0, 1, 2]],
  ['that takes little is done at once', 1, [0, 0, 0]],
])('work %s, in order', async (_what, tookMs, expected) => {
  let time = 0;
  let turn = 0;
  const begun: number[] = [];
  vi.spyOn(performance, 'now').mockImplementation(() => time);
  const countTurn = () => {
    turn += 1;
    if (begun.length < 3) setImmediate(countTurn);
  };
  setImmediate(countTurn);
  const work = () => {
    begun.push(turn);
    time += tookMs;
  };

  await Promise.all([inTimeSlice(work), inTimeSlice(work), inTimeSlice(work)]);

  const [first = 0] = begun;
  expect(begun.map((each) => each - first)).toEqual(expected);
});

it('work that throws fails with what it throws', async () => {
  const failed = inTimeSlice(() => {
    throw new Error('wrong');
  });

  await expect(failed).rejects.toThrow('wrong');
});
