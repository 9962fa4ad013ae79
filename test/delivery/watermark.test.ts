import { beforeEach, describe, expect, it } from 'vitest';
import { createWatermark, type Watermark } from '../../src/delivery/worker/watermark.ts';

describe('a watermark', () => {
  let now: number;
  let watermark: Watermark;
  beforeEach(() => {
    now = 1_000_000;
    watermark = createWatermark(() => now);
  });

  it('has no lower bound at first and every ten seconds', () => {
    expect(watermark.since()).toBe(0);
    watermark.advance(now);
    expect(watermark.since()).toBe(now - 100);
    now += 10_000;
    expect(watermark.since()).toBe(0);
  });

  it('goes back a little each time, and further every second, for what is committed late', () => {
    watermark.since();
    watermark.advance(now);
    now += 999;
    expect(watermark.since()).toBe(1_000_000 - 100);
    now += 1;
    expect(watermark.since()).toBe(1_000_000 - 5_000);
    expect(watermark.since()).toBe(1_000_000 - 100);
  });

  it('does not go back to times that were passed long after they had come', () => {
    const old = now - 60_000;
    watermark.since();
    watermark.advance(old);
    expect(watermark.since()).toBe(old);
    now += 1_000;
    expect(watermark.since()).toBe(old);

    watermark.advance(old + 50);
    watermark.advance(now);
    expect(watermark.since()).toBe(now - 100);
  });

  it('begins anew when the clock steps back', () => {
    watermark.since();
    watermark.advance(now);
    now -= 500_000;
    expect(watermark.since()).toBe(0);
    watermark.advance(now);
    expect(watermark.since()).toBe(now - 100);
    now += 10_000;
    expect(watermark.since()).toBe(0);
  });

  it('moves back when something older is left', () => {
    watermark.since();
    watermark.advance(now - 60_000);
    watermark.advance(now - 90_000);

    expect(watermark.since()).toBe(now - 90_000);
  });
});
