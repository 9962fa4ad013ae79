import { describe, expect, it } from 'vitest';
import { newId } from '../../../src/domain/ids.ts';
import { numbersOfDay } from '../../../src/store/submissions/submission-numbers.ts';
import { engines, openTestDatabase } from '../../support/database.ts';

describe.each(engines)('numbersOfDay on %s', (engine) => {
  it('counts the accepted submissions of each form and day (UTC), up to 1,000', async () => {
    await using database = await openTestDatabase(engine);
    const midnight = Date.parse('2026-11-22T00:00:00.000Z');
    const given = async (formId: string, at: number, status = 'accepted') => {
      const [id, createdAt] = [newId('sub', at), new Date(at)];
      await database.execute(
        `insert into submissions (id, project_id, form_id, version_id, source, answers, metadata, status, created_at)
         values ($1, 'prj_1', $2, 'ver_1', 'api', '{}', '{}', $3, $4)`,
        [id, formId, status, createdAt],
      );
      return { formId, id, createdAt };
    };
    const late = await given('form_a', midnight - 1);
    const first = await given('form_a', midnight);
    await given('form_a', midnight + 1, 'spam');
    await given('form_b', midnight + 2);
    const second = await given('form_a', midnight + 3);
    const other = await given('form_b', midnight + 4);
    await given('form_a', midnight + 5);
    const fourth = await given('form_a', midnight + 86_399_999);
    const removed = { formId: 'form_a', id: newId('sub', midnight + 6), createdAt: new Date(midnight + 6) };

    const numbers = await numbersOfDay(database, [fourth, late, other, second, first, removed]);
    const alone = await numbersOfDay(database, [fourth]);
    await database.execute(
      `insert into submissions (id, project_id, form_id, version_id, source, answers, metadata, status, created_at)
       select 'sub_' || lpad(n::text, 26, '0'), 'prj_1', 'form_c', 'ver_1', 'api', '{}', '{}', 'accepted', now()
       from generate_series(1, 1001) n`,
    );
    const many = [1000, 1001].map((n) => `sub_${String(n).padStart(26, '0')}`);
    const bounded = await numbersOfDay(
      database,
      many.map((id) => ({ formId: 'form_c', id, createdAt: new Date(0) })),
    );

    expect([late, first, second, fourth, other, removed].map(({ id }) => numbers.get(id))).toEqual([
      1,
      1,
      2,
      4,
      2,
      undefined,
    ]);
    expect(alone.get(fourth.id)).toBe(4);
    expect(many.map((id) => bounded.get(id))).toEqual([1000, undefined]);
  });
});
