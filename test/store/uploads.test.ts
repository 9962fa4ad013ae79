import { describe, expect, it } from 'vitest';
import { countCall } from '../../src/store/rate-limits.ts';
import { removeOutdated } from '../../src/store/removal/removals.ts';
import { createSubmissionWriter } from '../../src/store/submissions/submission-writer.ts';
import {
  findUnclaimedUploads,
  findUpload,
  insertUpload,
  removeUnclaimedUploads,
} from '../../src/store/uploads.ts';
import { engines, openTestDatabase } from '../support/database.ts';
import { aSubmission } from './given.ts';

describe.each(engines)('uploads on %s', (engine) => {
  it('are seen by their project, offered to their form, and go when nobody claims them in time', async () => {
    await using database = await openTestDatabase(engine);
    const old = new Date(Date.now() - 3_600_000);
    for (const [id, createdAt] of [
      ['upl_claimed', old],
      ['upl_left', old],
      ['upl_fresh', new Date()],
    ] as const) {
      const place = { id, projectId: 'prj_one', formId: 'form_one', fieldId: 'cv', submissionId: null };
      await insertUpload(database, {
        ...place,
        filename: 'a',
        contentType: 'b',
        size: 1,
        sha256: 'c',
        keyless: false,
        createdAt,
      });
    }
    await createSubmissionWriter(database).write(aSubmission({ uploadIds: ['upl_claimed'] }));
    const ids = ['upl_claimed', 'upl_left', 'upl_fresh', 'upl_unknown'];

    const free = await findUnclaimedUploads(database, 'form_one', ids);
    const gone = await removeUnclaimedUploads(database, 1_800, 10);

    expect(free.map(({ id }) => id).toSorted()).toEqual(['upl_fresh', 'upl_left']);
    expect(await findUnclaimedUploads(database, 'form_two', ids)).toEqual([]);
    expect(gone).toBe(1);
    expect(await database.select('select subject from removals')).toEqual([{ subject: 'upl_left' }]);
    expect(await findUpload(database, 'prj_one', 'upl_claimed')).toMatchObject({ sha256: 'c' });
    expect(await findUpload(database, 'prj_two', 'upl_claimed')).toBeNull();
  });
});

describe.each(engines)('counted calls on %s', (engine) => {
  it('are counted by key until their window ends, by all who count', async () => {
    await using database = await openTestDatabase(engine);

    const counts = await Promise.all(Array.from({ length: 5 }, () => countCall(database, 'create:a', 60)));
    const other = await countCall(database, 'create:b', -1);
    const again = await countCall(database, 'create:b', -1);

    expect(new Set(counts.map(({ hits }) => hits))).toEqual(new Set([1, 2, 3, 4, 5]));
    expect(counts[0]?.endsInMs).toBeGreaterThan(50_000);
    expect([other.hits, again.hits]).toEqual([1, 1]);
    expect(await removeOutdated(database, 10)).toMatchObject({ rate_limits: 1 });
    expect((await countCall(database, 'create:a', 60)).hits).toBe(6);
  });
});
