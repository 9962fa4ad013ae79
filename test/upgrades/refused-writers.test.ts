import { describe, expect, it } from 'vitest';
import { sqlState } from '../../src/store/database/faults.ts';
import { engines, openTestDatabase } from '../support/database.ts';

describe.each(engines)('events on %s', (engine) => {
  it.each(['submission.created', 'session.expired'])(
    'of versions that queue no deliveries are refused as a fault that these answer with 503: %s',
    async (type) => {
      await using database = await openTestDatabase(engine);

      const refused = await database.execute(insertBeforeTheQueue(type)).catch((error: unknown) => error);

      // A serialization failure is tried again by the version before the queue, and then answered with 503.
      expect(sqlState((refused as Error).cause)).toBe('40001');
      expect(await database.select('select id from events union all select id from submissions')).toEqual([]);
    },
  );

  it('of which mails alone are made are stored by versions that do not say so, and wait', async () => {
    await using database = await openTestDatabase(engine);

    await database.execute(insertBeforeTheQueue('form.activated'));

    expect(await database.select('select id, fanned_out_at from events')).toEqual([
      { id: 'evt_1', fanned_out_at: null },
    ]);
  });
});

/** As the version before 2026-11-22-delivery-queue stores a submission with its event. */
function insertBeforeTheQueue(type: string): string {
  return `with stored as (
      insert into submissions (id, project_id, form_id, version_id, session_id, source, answers, metadata, status,
        idempotency_key, request_fingerprint, created_at)
      values ('sub_1', 'prj_1', 'form_1', 'ver_1', null, 'api', '{}', '{}', 'accepted', null, null, now())
      returning id
    )
    insert into events (id, project_id, form_id, type, submission_id, session_id, body, created_at)
    select 'evt_1', 'prj_1', 'form_1', '${type}', id, null, '{}', now() from stored`;
}
