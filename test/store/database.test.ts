import { describe, expect, it } from 'vitest';
import { engines, openTestDatabase } from '../support/database.ts';

describe.each(engines)('the database on %s', (engine) => {
  it('answers by its own clock', async () => {
    await using database = await openTestDatabase(engine);

    const now = await database.now();

    expect(Math.abs(now.getTime() - Date.now())).toBeLessThan(5_000);
    expect(await database.isReady()).toBe(true);
  });
});
