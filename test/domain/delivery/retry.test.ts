import { describe, expect, it, onTestFinished, vi } from 'vitest';
import {
  defaultSchedule,
  nextAttempt,
  parseRetryAfter,
  parseSchedule,
} from '../../../src/domain/delivery/retry.ts';

const now = new Date('2026-11-21T10:00:00.000Z');
const never = () => 0;
const always = () => 1 - Number.EPSILON;

function delay(attempt: number, retryAfter?: string, random = never): number | null {
  const next = nextAttempt({ attempt, schedule: defaultSchedule, retryAfter, now, random });
  return next && (next.getTime() - now.getTime()) / 1000;
}

describe('nextAttempt', () => {
  it('follows the schedule and ends with it', () => {
    const delays = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map((attempt) => delay(attempt));

    expect(delays).toEqual([0, 5, 30, 120, 900, 3600, 21_600, 86_400, null, null]);
  });

  it('adds at most 20 % of jitter, and none to the attempt at once', () => {
    expect(delay(0, undefined, always)).toBe(0);
    expect(delay(4, undefined, always)).toBe(1080);
  });

  it.each([
    ['is earlier than the step', 4, '10', 900],
    ['is later than the step', 1, '60', 60],
    ['asks for more than an hour', 1, '7200', 3600],
    ['asks for more than a step above an hour', 6, '99999999', 21_600],
    ['is a date', 1, 'Sat, 21 Nov 2026 10:01:00 GMT', 60],
    ['is a date gone by', 1, 'Sat, 21 Nov 2026 09:00:00 GMT', 5],
    ['is nonsense', 1, 'soon', 5],
    ['is below zero', 1, '-60', 5],
    ['is a number beyond numbers', 1, '9'.repeat(400), 3600],
  ])('honours Retry-After within reason where it %s', (_, attempt, retryAfter, seconds) => {
    expect(delay(attempt, retryAfter)).toBe(seconds);
  });

  it('does not let Retry-After lengthen the schedule', () => {
    expect(delay(8, '10')).toBeNull();
  });
});

describe('parseRetryAfter', () => {
  it.each([
    ['Saturday, 21-Nov-26 10:00:30 GMT', 30],
    [' 30 ', 30],
    ['2026-11-21T10:00:30Z', undefined],
    ['1.5', 1.5],
    ['1,5', undefined],
    ['', undefined],
    [null, undefined],
    [undefined, undefined],
  ])('reads %j as %j seconds', (header, seconds) => {
    expect(parseRetryAfter(header, now)).toBe(seconds);
  });

  it.each(['UTC', 'America/New_York'])('reads a date without a zone as GMT, also in %s', (zone) => {
    vi.stubEnv('TZ', zone);
    onTestFinished(() => void vi.unstubAllEnvs());

    expect(parseRetryAfter('Sat Nov 21 10:00:30 2026', now)).toBe(30);
  });
});

describe('parseSchedule', () => {
  it('reads seconds, comma-separated', () => {
    expect(parseSchedule('0, 0.5,604800')).toEqual([0, 0.5, 604_800]);
  });

  it.each([
    '',
    '1,',
    'a',
    '-1',
    '1;2',
    '1e3',
    '604801',
    'Infinity',
    Array.from({ length: 51 }, () => '1').join(','),
  ])('refuses %j', (text) => {
    expect(() => parseSchedule(text)).toThrow(/delays in seconds/);
  });
});
