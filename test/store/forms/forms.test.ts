import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { FormDefinition } from '../../../src/domain/definition/definition.ts';
import { newId } from '../../../src/domain/ids.ts';
import type { Database } from '../../../src/store/database/database.ts';
import {
  archiveForm,
  findAnyForm,
  findForm,
  listForms,
  lockForm,
  removeUnactivatedForms,
} from '../../../src/store/forms/forms.ts';
import {
  activateForm,
  findVersion,
  listAskedFields,
  listVersions,
  publishVersion,
} from '../../../src/store/forms/versions.ts';
import { confirmOwner, proposeOwner } from '../../../src/store/owners/owners.ts';
import { emptyTables, engines, openTestDatabase, type TestDatabase } from '../../support/database.ts';
import { aDefinition, givenForm } from '../given.ts';

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
    const { items } = await listForms(database, 'prj_one', { limit: 5 });
    expect(items).toHaveLength(1);
    expect(JSON.stringify(items)).not.toContain('draftDefinition');
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
    const form = await givenForm(database);
    await activate(database, form.id, 'hash', 'one');

    const [second, third] = await Promise.all([
      publish(database, form.id, 'two'),
      publish(database, form.id, 'three'),
    ]);
    const back = await publish(database, form.id, 'one');

    expect([second, third].map(({ number }) => number)).toEqual(expect.arrayContaining([2, 3]));
    expect(back).toMatchObject({ number: 1 });
    const listed = await listVersions(database, form.id, { limit: 2 });
    const last = await listVersions(database, form.id, { limit: 2, cursor: listed.nextCursor ?? '' });
    expect([...listed.items, ...last.items].map(({ number }) => number)).toEqual([3, 2, 1]);
    expect(last.nextCursor).toBeNull();
    expect(await findAnyForm(database, form.id)).toMatchObject({ name: 'one' });
  });

  it('lists the fields of all versions, those of the newest first, and reads few definitions at once', async () => {
    const form = await givenForm(database);
    await activate(database, form.id, 'hash', 'one');
    for (let number = 2; number <= 25; number += 1) {
      const fields = [`only_${number}`, 'email'].flatMap((id) =>
        aDefinition().fields.map((field) => ({ ...field, id })),
      );
      await publish(database, form.id, `v${number}`, { fields });
    }
    const read: number[] = [];
    const counting: Database = {
      ...database,
      select: async (sql, params) => {
        const rows = await database.select(sql, params);
        read.push(rows.length);
        return rows;
      },
    };

    const { fields, numbers } = await listAskedFields(counting, form.id);

    const older = Array.from({ length: 23 }, (_, index) => `only_${24 - index}`);
    expect(fields).toMatchObject(
      ['only_25', 'email', ...older].map((id) => ({ id, type: 'email', label: 'Email', mark: '' })),
    );
    expect(fields.map(({ versions }) => versions.size)).toEqual([1, 25, ...older.map(() => 1)]);
    expect(read).toEqual([10, 10, 5]);
    expect([...numbers.values()]).toEqual(Array.from({ length: 25 }, (_, index) => 25 - index));
    expect((await listAskedFields(database, 'form_other')).fields).toEqual([]);
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
    expect(await confirmOwner(database, form.id, 'third@example.com')).toBeNull();
    expect(await confirmOwner(database, form.id, 'old@example.com')).toMatchObject({
      address: 'old@example.com',
    });
    expect(await findAnyForm(database, form.id)).toMatchObject({
      ownerEmail: 'old@example.com',
      pendingOwnerEmail: 'new@example.com',
      ownerConfirmedAt: expect.any(Date),
    });
    expect(await confirmOwner(database, form.id, 'new@example.com')).toEqual({
      address: 'old@example.com',
      isConfirmed: true,
    });

    expect(await findAnyForm(database, form.id)).toMatchObject({
      ownerEmail: 'new@example.com',
      pendingOwnerEmail: null,
      ownerEpoch: 1,
    });
    expect(await confirmOwner(database, form.id, 'old@example.com')).toBeNull();
  });

  it('removes drafts made without a key that were not activated in time, and no others', async () => {
    const past = new Date(Date.now() - 1);
    const stale = await givenForm(database, { activationExpiresAt: past });
    const kept = [
      await givenForm(database),
      await givenForm(database, { activationExpiresAt: past, createdBy: 'key_1' }),
      await givenForm(database, { activationExpiresAt: past, status: 'published' }),
    ];

    expect(await removeUnactivatedForms(database, 10)).toEqual([
      { id: stale.id, projectId: stale.projectId },
    ]);

    expect(await findAnyForm(database, stale.id)).toBeNull();
    for (const form of kept) expect(await findAnyForm(database, form.id)).not.toBeNull();
  });

  it('knows which forms keep submissions for a time only', async () => {
    const [keeper, forgetful] = [await givenForm(database), await givenForm(database)];
    await activate(database, keeper.id, 'hash');
    await activate(database, forgetful.id, 'hash', 'short', 30);

    expect(await retentions()).toEqual([{ id: forgetful.id, retention_days: 30 }]);
  });

  it('follows the retention time of the version that is published last', async () => {
    const form = await givenForm(database);
    await activate(database, form.id, 'hash', 'one', 30);

    await publish(database, form.id, 'two');
    expect(await retentions()).toEqual([]);
    await publish(database, form.id, 'one');
    expect(await retentions()).toEqual([{ id: form.id, retention_days: 30 }]);
  });

  async function retentions() {
    return database.select('select id, retention_days from forms where retention_days is not null');
  }
});

function aVersion(name: string, retentionDays?: number, given: Partial<FormDefinition> = {}) {
  const definition = aDefinition({ name, ...given });
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

function publish(database: Database, formId: string, name: string, given: Partial<FormDefinition> = {}) {
  const version = aVersion(name, undefined, given);
  return database.transaction(async (tx) => {
    await lockForm(tx, formId);
    const { currentVersionId } = (await findAnyForm(tx, formId)) ?? {};
    return publishVersion(tx, { formId, currentId: currentVersionId ?? '', version, breaking: false });
  });
}
