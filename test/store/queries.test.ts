import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { newId } from '../../src/domain/ids.ts';
import type { Database } from '../../src/store/database.ts';
import {
  archiveForm,
  confirmOwner,
  findAnyForm,
  findForm,
  listForms,
  listRetentions,
  proposeOwner,
  removeUnactivatedForms,
} from '../../src/store/forms.ts';
import { agreeOn } from '../../src/store/installation.ts';
import {
  deleteKey,
  findKeyByHash,
  insertFirstKey,
  insertKey,
  type Key,
  listKeys,
  touchKey,
} from '../../src/store/keys.ts';
import { findProject, getOrCreateProject } from '../../src/store/projects.ts';
import { activateForm, publishVersion } from '../../src/store/publishing.ts';
import { findVersion, listVersions } from '../../src/store/versions.ts';
import { emptyTables, engines, openTestDatabase, type TestDatabase } from '../support/database.ts';
import { aDefinition, givenForm } from './given.ts';

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

  it('finds a key by its hash until it expires or is deleted by its own project', async () => {
    const key = aKey({
      secretHash: 'lasting',
      expiresAt: new Date(Date.now() + 60_000),
      scopes: ['forms:read', '*'],
    });
    await insertKey(database, key);
    await insertKey(database, aKey({ secretHash: 'expired', expiresAt: new Date(Date.now() - 1) }));

    expect(await findKeyByHash(database, 'lasting')).toMatchObject(key);
    expect(await findKeyByHash(database, 'expired')).toBeNull();
    expect(await findKeyByHash(database, 'unknown')).toBeNull();
    expect(await deleteKey(database, 'prj_two', key.id)).toBe(false);
    expect(await deleteKey(database, 'prj_one', key.id)).toBe(true);
    expect(await findKeyByHash(database, 'lasting')).toBeNull();
  });

  it('notes a key’s use at most once a minute', async () => {
    const key = aKey();
    await insertKey(database, key);

    await touchKey(database, key.id);
    const first = (await findKeyByHash(database, key.secretHash))?.lastUsedAt;
    await touchKey(database, key.id);

    expect(first).toBeInstanceOf(Date);
    expect((await findKeyByHash(database, key.secretHash))?.lastUsedAt).toEqual(first);
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

describe.each(engines)('forms on %s', (engine) => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await openTestDatabase(engine);
  });
  beforeEach(() => emptyTables(database));
  afterAll(() => database[Symbol.asyncDispose]());

  it('keeps a form as it was given, and shows it to its project alone', async () => {
    const form = await givenForm(database, { draftDefinition: aDefinition({ name: 'é \u{1F600}' }) });

    expect({ ...(await findForm(database, 'prj_one', form.id)) }).toEqual(form);
    expect(await findForm(database, 'prj_two', form.id)).toBeNull();
    expect(await findAnyForm(database, form.id)).toMatchObject({ id: form.id });
    expect((await listForms(database, 'prj_one', { limit: 5 })).items).toHaveLength(1);
    expect((await listForms(database, 'prj_two', { limit: 5 })).items).toEqual([]);
  });

  it('activates a draft once, with the right token, in time', async () => {
    const form = await givenForm(database, { draftDefinition: aDefinition(), draftSecret: 'sealed' });
    const late = await givenForm(database, { activationExpiresAt: new Date(Date.now() - 1) });

    expect(await activate(database, 'form_unknown', 'hash')).toBe('not_found');
    expect(await activate(database, form.id, 'wrong')).toBe('wrong_token');
    expect(await activate(database, late.id, 'hash')).toBe('expired');
    const raced = await Promise.all([
      activate(database, form.id, 'hash'),
      activate(database, form.id, 'hash'),
    ]);
    expect(raced.toSorted()).toEqual(['activated', 'used']);

    const published = await findAnyForm(database, form.id);
    expect(published).toMatchObject({
      status: 'published',
      ownerEmail: 'owner@example.com',
      draftSecret: null,
    });
    const version = await findVersion(database, published?.currentVersionId ?? '');
    expect(version).toMatchObject({ formId: form.id, number: 1, definition: aDefinition() });
    expect(await findAnyForm(database, late.id)).toMatchObject({ status: 'draft' });
  });

  it('numbers versions, and brings back an unchanged one', async () => {
    const draft = await givenForm(database);
    const form = await givenForm(database);
    await activate(database, form.id, 'hash', 'one');

    const [second, third] = await Promise.all([
      publish(database, form.id, 'two'),
      publish(database, form.id, 'three'),
    ]);
    const back = await publish(database, form.id, 'one');

    expect(
      [second, third].map((done) => done.outcome === 'published' && done.version.number).toSorted(),
    ).toEqual([2, 3]);
    expect(back).toMatchObject({ outcome: 'published', version: { number: 1 } });
    expect((await listVersions(database, form.id)).map(({ number }) => number)).toEqual([3, 2, 1]);
    expect(await findAnyForm(database, form.id)).toMatchObject({ name: 'one' });
    expect(await publish(database, draft.id, 'one')).toEqual({ outcome: 'not_published' });
    expect(await publish(database, form.id, 'four', 'prj_two')).toEqual({ outcome: 'not_found' });
  });

  it('archives a form of the project, once and for all', async () => {
    const form = await givenForm(database);

    expect(await archiveForm(database, 'prj_two', form.id)).toBe(false);
    expect(await archiveForm(database, 'prj_one', form.id)).toBe(true);
    const archivedAt = (await findAnyForm(database, form.id))?.archivedAt;
    expect(await archiveForm(database, 'prj_one', form.id)).toBe(true);

    expect(archivedAt).toBeInstanceOf(Date);
    expect(await findAnyForm(database, form.id)).toMatchObject({ status: 'archived', archivedAt });
  });

  it('changes the owner when the proposed address confirms', async () => {
    const form = await givenForm(database, { ownerEmail: 'old@example.com' });

    expect(await proposeOwner(database, 'prj_two', form.id, 'new@example.com')).toBe(false);
    expect(await proposeOwner(database, 'prj_one', form.id, 'new@example.com')).toBe(true);
    expect(await confirmOwner(database, form.id, 'third@example.com')).toBe(false);
    expect(await confirmOwner(database, form.id, 'old@example.com')).toBe(true);
    expect(await findAnyForm(database, form.id)).toMatchObject({
      ownerEmail: 'old@example.com',
      pendingOwnerEmail: 'new@example.com',
      ownerConfirmedAt: expect.any(Date),
    });
    expect(await confirmOwner(database, form.id, 'new@example.com')).toBe(true);

    expect(await findAnyForm(database, form.id)).toMatchObject({
      ownerEmail: 'new@example.com',
      pendingOwnerEmail: null,
    });
    expect(await confirmOwner(database, form.id, 'old@example.com')).toBe(false);
  });

  it('removes drafts made without a key that were not activated in time, and no others', async () => {
    const past = new Date(Date.now() - 1);
    const stale = await givenForm(database, { activationExpiresAt: past });
    const kept = [
      await givenForm(database),
      await givenForm(database, { activationExpiresAt: past, createdBy: 'key_1' }),
      await givenForm(database, { activationExpiresAt: past, status: 'published' }),
    ];

    expect(await removeUnactivatedForms(database, 10)).toBe(1);

    expect(await findAnyForm(database, stale.id)).toBeNull();
    for (const form of kept) expect(await findAnyForm(database, form.id)).not.toBeNull();
  });

  it('knows which forms keep submissions for a time only', async () => {
    const [keeper, forgetful] = [await givenForm(database), await givenForm(database)];
    await activate(database, keeper.id, 'hash');
    await activate(database, forgetful.id, 'hash', 'short', 30);

    const { items } = await listRetentions(database, { limit: 10 });

    expect(items).toEqual([{ id: forgetful.id, retentionDays: 30 }]);
  });
});

function aKey(given: Partial<Key> = {}): Key {
  const id = given.id ?? newId('key', Date.now());
  const times = { createdAt: new Date(), expiresAt: null, lastUsedAt: null };
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

function aVersion(name: string, retentionDays?: number) {
  const definition = aDefinition({ name });
  const settings =
    retentionDays === undefined ? definition.settings : { ...definition.settings, retentionDays };
  return {
    id: newId('ver', Date.now()),
    definition: { ...definition, settings },
    checksum: name,
    createdAt: new Date(),
  };
}

function activate(
  database: Database,
  formId: string,
  tokenHash: string,
  name = 'Contact',
  retentionDays?: number,
) {
  const version = aVersion(name, retentionDays);
  return database.transaction((tx) =>
    activateForm(tx, { formId, tokenHash, ownerEmail: 'owner@example.com', version }),
  );
}

function publish(database: Database, formId: string, name: string, projectId = 'prj_one') {
  return database.transaction((tx) => publishVersion(tx, { projectId, formId, version: aVersion(name) }));
}
