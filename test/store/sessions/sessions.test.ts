import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { removeExpiredSessions } from '../../../src/store/sessions/session-removal.ts';
import {
  findAnySession,
  findSession,
  lockSession,
  markSessionOpened,
  takeExpiredSessions,
  updateSession,
} from '../../../src/store/sessions/sessions.ts';
import { engines, openTestDatabase, type TestDatabase } from '../../support/database.ts';
import { givenForm, givenSession } from '../given.ts';

describe.each(engines)('sessions on %s', (engine) => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await openTestDatabase(engine);
  });
  afterAll(() => database[Symbol.asyncDispose]());

  it('last as long as was asked, by the database’s clock, and belong to one project', async () => {
    const session = await givenSession(database, { id: 'sess_lasting', expiresIn: 90 });

    expect(session).toMatchObject({
      status: 'open',
      openedAt: null,
      submissionId: null,
      partialAnswers: null,
    });
    expect(session.expiresAt.getTime() - session.createdAt.getTime()).toBe(90_000);
    const found = await findSession(database, 'prj_one', session.id);
    expect(found).toEqual({ ...session, readAt: found?.readAt });
    expect(await findSession(database, 'prj_two', session.id)).toBeNull();
    expect(await findAnySession(database, session.id)).toMatchObject({ projectId: 'prj_one' });
    expect(await findAnySession(database, 'sess_unknown')).toBeNull();
  });

  it('are stored once for each id and key of a request, whatever they ask', async () => {
    const given = { id: 'sess_once', idempotency: { key: 'once', fingerprint: 'a' } };
    const first = await givenSession(database, given);

    const sameId = await givenSession(database, { id: first.id });
    const sameKey = await givenSession(database, { ...given, id: 'sess_again' });
    const otherForm = await givenSession(database, { ...given, id: 'sess_other', formId: 'form_other' });

    expect([sameId.id, sameKey.id, otherForm.id]).toEqual(Array(3).fill('sess_once'));
    expect([sameKey.requestFingerprint, sameKey.createdAt]).toEqual(['a', first.createdAt]);
    expect(await findAnySession(database, 'sess_again')).toBeNull();
  });

  it('are expired from the instant on', async () => {
    const session = await givenSession(database, { id: 'sess_over', expiresIn: 0 });

    expect(await findAnySession(database, session.id)).toMatchObject({ status: 'expired' });
  });

  it('keep what a change does not name', async () => {
    const session = await givenSession(database, { id: 'sess_changed' });
    const expiresAt = new Date(session.expiresAt.getTime() + 1_000);

    await database.transaction(async (tx) => {
      expect(await lockSession(tx, session.id)).toMatchObject({ id: session.id });
      await updateSession(tx, session.id, { partialAnswers: { name: 'half' } });
      await updateSession(tx, session.id, { expiresAt, metadata: { from: 'test' } });
    });

    expect(await findAnySession(database, session.id)).toMatchObject({
      expiresAt,
      prefill: session.prefill,
      metadata: { from: 'test' },
      partialAnswers: { name: 'half' },
    });
  });

  it('remember when they were first opened', async () => {
    const session = await givenSession(database, { id: 'sess_opened' });

    await markSessionOpened(database, session.id);
    const opened = await findAnySession(database, session.id);
    await markSessionOpened(database, session.id);

    expect(opened?.openedAt).toBeInstanceOf(Date);
    expect((await findAnySession(database, session.id))?.openedAt).toEqual(opened?.openedAt);
  });

  it('are announced as expired once, by one of the sweeps, in small groups', async () => {
    await database.execute('delete from sessions');
    await Promise.all(
      ['a', 'b', 'c'].map((id) => givenSession(database, { id: `sess_swept_${id}`, expiresIn: 0 })),
    );
    await givenSession(database, { id: 'sess_swept_open' });
    const sweep = () => database.transaction((tx) => takeExpiredSessions(tx, 2));

    const groups = [...(await Promise.all([sweep(), sweep()])), await sweep()];

    const taken = groups.flat().map(({ id }) => id);
    expect(taken.toSorted()).toEqual(['sess_swept_a', 'sess_swept_b', 'sess_swept_c']);
    expect(groups.every(({ length }) => length <= 2)).toBe(true);
  });

  it('are announced later when the transaction with their event fails', async () => {
    await database.execute('delete from sessions');
    await givenSession(database, { id: 'sess_unlucky', expiresIn: 0 });

    const failing = database.transaction(async (tx) => {
      await takeExpiredSessions(tx, 2);
      throw new Error('no event');
    });

    await expect(failing).rejects.toThrow('no event');
    expect(await database.transaction((tx) => takeExpiredSessions(tx, 2))).toHaveLength(1);
  });

  it('are removed once they are over and announced', async () => {
    await database.execute('delete from sessions');
    await givenSession(database, { id: 'sess_old', expiresIn: 0 });
    const { id: formId, projectId } = await givenForm(database, { retentionDays: 1 });
    await database.execute(`update sessions set form_id = $1, project_id = $2`, [formId, projectId]);

    await database.transaction((tx) => takeExpiredSessions(tx, 2));
    expect(await removeExpiredSessions(database, 10)).toEqual([]);
    await database.execute(
      `update sessions set expires_at = now() - interval '25 hours', expiry_announced_at = null`,
    );
    expect(await removeExpiredSessions(database, 10)).toEqual([]);
    await database.transaction((tx) => takeExpiredSessions(tx, 2));
    expect(await removeExpiredSessions(database, 10)).toEqual([{ formId, projectId, count: 1 }]);
  });
});
