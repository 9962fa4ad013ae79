import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { newId } from '../../src/domain/ids.ts';
import { agreeOn } from '../../src/store/installation.ts';
import {
  findValidKey,
  insertFirstKey,
  insertKey,
  type Key,
  listKeys,
  revokeKey,
  touchKey,
} from '../../src/store/keys.ts';
import { findProject, getOrCreateProject } from '../../src/store/projects/projects.ts';
import { emptyTables, engines, openTestDatabase, type TestDatabase } from '../support/database.ts';

describe.each(engines)('projects and keys on %s', (engine) => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await openTestDatabase(engine);
  });
  beforeEach(() => emptyTables(database));
  afterAll(() => database[Symbol.asyncDispose]());

  it('makes a project once, however many ask', async () => {
    const asked = ['prj_1', 'prj_2', 'prj_3'].map((id) => ({ id, name: 'default', createdAt: new Date() }));

    const projects = await Promise.all(asked.map((project) => getOrCreateProject(database, project)));

    expect(new Set(projects.map(({ id }) => id)).size).toBe(1);
    expect(await findProject(database, projects[0]?.id ?? '')).toMatchObject({ name: 'default' });
  });

  it('makes the first key once, however many start at the same time', async () => {
    const made = await Promise.all(
      ['a', 'b', 'c'].map((hash) =>
        database.transaction((tx) => insertFirstKey(tx, aKey({ secretHash: hash }))),
      ),
    );

    expect(made.filter(Boolean)).toHaveLength(1);
    expect((await listKeys(database, 'prj_one', { limit: 10 })).items).toHaveLength(1);
  });

  it('finds a key by its hash until it expires or is revoked', async () => {
    const key = aKey({
      secretHash: 'lasting',
      expiresAt: new Date(Date.now() + 60_000),
      scopes: ['forms:read', '*'],
    });
    await insertKey(database, key);
    await insertKey(database, aKey({ secretHash: 'expired', expiresAt: new Date(Date.now() - 1) }));

    expect(await findValidKey(database, { secretHash: 'lasting' })).toMatchObject(key);
    expect(await findValidKey(database, { secretHash: 'expired' })).toBeNull();
    expect(await findValidKey(database, { secretHash: 'unknown' })).toBeNull();
    const revoke = () => database.transaction((tx) => revokeKey(tx, key.id, { children: false }));
    expect((await revoke()).map(({ id }) => id)).toEqual([key.id]);
    expect(await revoke()).toEqual([]);
    expect(await findValidKey(database, { secretHash: 'lasting' })).toBeNull();
  });

  it('notes a key’s use at most once a minute', async () => {
    const key = aKey();
    await insertKey(database, key);

    await touchKey(database, key.id);
    const first = (await findValidKey(database, { secretHash: key.secretHash }))?.lastUsedAt;
    await touchKey(database, key.id);

    expect(first).toBeInstanceOf(Date);
    expect((await findValidKey(database, { secretHash: key.secretHash }))?.lastUsedAt).toEqual(first);
  });

  it('lists the keys of one project, newest first, page by page', async () => {
    for (const id of ['key_1', 'key_2', 'key_3']) await insertKey(database, aKey({ id, secretHash: id }));
    await insertKey(database, aKey({ id: 'key_4', secretHash: 'other', projectId: 'prj_two' }));

    const first = await listKeys(database, 'prj_one', { limit: 2 });
    const second = await listKeys(database, 'prj_one', { limit: 2, cursor: first.nextCursor ?? '' });

    expect(first.items.map(({ id }) => id)).toEqual(['key_3', 'key_2']);
    expect([second.items.map(({ id }) => id), second.nextCursor]).toEqual([['key_1'], null]);
  });

  it('keeps the first value that is agreed on', async () => {
    const agreed = await Promise.all(['a', 'b'].map((value) => agreeOn(database, 'check', value)));

    expect(agreed[0]).toBe(agreed[1]);
    expect(await agreeOn(database, 'check', 'c')).toBe(agreed[0]);
  });
});

function aKey(given: Partial<Key> = {}): Key {
  const id = given.id ?? newId('key', Date.now());
  const times = { createdAt: new Date(), expiresAt: null, lastUsedAt: null, createdBy: null };
  return {
    id,
    projectId: 'prj_one',
    name: 'key',
    secretHash: id,
    last4: 'abcd',
    scopes: ['*'],
    ...times,
    ...given,
  };
}
