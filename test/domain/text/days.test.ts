import { describe, expect, it } from 'vitest';
import { boundsOfDay, daysIn, isTimeZone } from '../../../src/domain/text/days.ts';

const HOUR = 3_600_000;

describe('the days of a time zone', () => {
  it('begin at its midnight', () => {
    expect(boundsOfDay('2026-07-01', 'Asia/Kathmandu')).toEqual([
      Date.parse('2026-06-30T18:15:00Z'),
      Date.parse('2026-07-01T18:15:00Z'),
    ]);
  });

  it('have 23, 24 or 25 hours, and begin later where the clocks skip midnight', () => {
    const hours = (day: string, zone: string) => {
      const [start, end] = boundsOfDay(day, zone);
      return (end - start) / HOUR;
    };

    expect(hours('2026-03-29', 'Europe/Berlin')).toBe(23);
    expect(hours('2026-03-30', 'Europe/Berlin')).toBe(24);
    expect(hours('2026-10-25', 'Europe/Berlin')).toBe(25);
    // In Chile the summer begins at midnight, which becomes one o'clock.
    expect(boundsOfDay('2026-09-06', 'America/Santiago')[0]).toBe(Date.parse('2026-09-06T04:00:00Z'));
  });

  it('follow each other without a gap, in every time zone', () => {
    const days = ['2026-02-28', '2026-03-01', '2026-03-29', '2026-10-25', '2026-12-31'];
    for (const zone of Intl.supportedValuesOf('timeZone')) {
      const dayOf = daysIn(zone);
      for (const day of days) {
        const [start, end] = boundsOfDay(day, zone);
        expect([dayOf(start), dayOf(end - 1)], zone).toEqual([day, day]);
        expect(dayOf(start - 1) < day && dayOf(end) > day, zone).toBe(true);
      }
    }
  });

  it('are those of zones that there are', () => {
    const names = ['UTC', 'Asia/Kathmandu', '+05:45', '', 'Mars/Olympus', '<b>', 'Asia/'.padEnd(100, 'x')];
    expect(names.filter(isTimeZone)).toEqual(['UTC', 'Asia/Kathmandu', '+05:45']);
  });
});
