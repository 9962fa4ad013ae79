import { createClient } from '@connectrpc/connect';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FormsService } from '../../../gen/headlessforms/v1/forms_pb.js';
import { KeysService } from '../../../gen/headlessforms/v1/keys_pb.js';
import { scopes as allScopes } from '../../../src/domain/scopes.ts';
import { makeFirstKey, registerBootstrapKey } from '../../../src/services/keys/keys.ts';
import { AuditWriter } from '../../../src/store/audit/audit-writer.ts';
import type { Database } from '../../../src/store/database/database.ts';
import { engines, openTestDatabase } from '../../support/database.ts';
import { failureOf } from '../../support/failures.ts';
import { servicesOn, startServices, type TestServices } from '../../support/services.ts';

describe.each(engines)('KeysService on %s', (engine) => {
  let rpc: TestServices;
  let now = Date.now();

  beforeAll(async () => {
    rpc = await startServices(engine, { now: () => now });
  });

  afterAll(() => rpc[Symbol.asyncDispose]());

  const keys = (key?: string) => createClient(KeysService, rpc.as(key));

  const bootstrapKey = async () => {
    const found = (await rpc.database.select(`select id from api_keys where name = 'BOOTSTRAP_API_KEY'`))[0]
      ?.id;
    const all = (await keys(rpc.key).listKeys({})).keys;
    return all.find(({ id }) => id === found) ?? Promise.reject(new Error('No bootstrap key'));
  };

  it('makes a key that works at once, and never shows its secret again', async () => {
    const made = await keys(rpc.key).createKey({ name: 'reader', scopes: ['forms:read'] });

    expect(made.secret).toMatch(/^hfs_[0-9A-Za-z]{43}$/);
    expect(made.key).toMatchObject({ name: 'reader', scopes: ['forms:read'], project: 'default' });
    expect(made.key?.last4).toBe(made.secret.slice(-4));
    await createClient(FormsService, rpc.as(made.secret)).listForms({});
    const rows = await rpc.database.select('select row_to_json(k)::text as text from api_keys k');
    expect(JSON.stringify(rows)).not.toContain(made.secret);
    expect(JSON.stringify((await keys(rpc.key).listKeys({})).keys, replaceBigint)).not.toContain(made.secret);
  });

  it('refuses what no key may be, all at once', async () => {
    const refused = async (request: object) =>
      (await failureOf(keys(rpc.key).createKey({ name: 'k', scopes: ['forms:read'], ...request })))
        .violations;

    expect(await refused({ name: '', scopes: [], expiresIn: { seconds: 0n } })).toEqual([
      ['name', 'invalid_type'],
      ['scopes', 'too_small'],
      ['expires_in', 'too_small'],
    ]);
    expect(await refused({ name: 'x'.repeat(201) })).toEqual([['name', 'too_big']]);
    expect(await refused({ name: 'x\0' })).toEqual([['name', 'custom']]);
    expect(await refused({ scopes: ['forms:read', 'all', 'forms:read'] })).toEqual([
      ['scopes[1]', 'invalid_enum_value'],
      ['scopes[2]', 'custom'],
    ]);
    expect(await refused({ scopes: Array(allScopes.length + 1).fill('forms:read') })).toEqual([
      ['scopes', 'too_big'],
    ]);
    expect(await refused({ project: 'no spaces' })).toEqual([['project', 'invalid_string']]);
    expect(await refused({ expiresIn: { seconds: 1n, nanos: 1 } })).toEqual([['expires_in', 'invalid_type']]);
    expect(await refused({ expiresIn: { seconds: 10n ** 18n } })).toEqual([['expires_in', 'too_big']]);
  });

  it('suggests the scope that an unknown one may mean', async () => {
    const { message } = await failureOf(keys(rpc.key).createKey({ name: 'k', scopes: ['form:write'] }));

    expect(message).toMatch(/^scopes\[0\]: Expected one of "forms:read", .*\. Did you mean `forms:write`\?$/);
  });

  it('lets no key make one that may do more', async () => {
    const weak = await rpc.givenKey({ scopes: ['keys:write', 'forms:read'], project: 'default' });
    const elsewhere = await rpc.givenKey();

    expect(await failureOf(keys(weak).createKey({ name: 'k', scopes: ['forms:read', '*'] }))).toMatchObject({
      violations: [['scopes[1]', 'custom']],
    });
    expect(
      await failureOf(keys(weak).createKey({ name: 'k', scopes: ['forms:read'], project: 'other' })),
    ).toMatchObject({ violations: [['project', 'custom']] });
    expect(
      await failureOf(keys(elsewhere).createKey({ name: 'k', scopes: ['*'], project: 'default' })),
    ).toMatchObject({ violations: [['project', 'custom']] });
    await keys(weak).createKey({ name: 'k', scopes: ['forms:read'] });
  });

  it('lets no key outlive the one that made it, and says which did', async () => {
    const lasting = { seconds: 3600n };
    const maker = await keys(rpc.key).createKey({
      name: 'maker',
      scopes: ['keys:write'],
      expiresIn: lasting,
    });
    const made = (request: object) =>
      keys(maker.secret).createKey({ name: 'child', scopes: ['keys:write'], ...request });

    expect((await made({})).key).toMatchObject({
      createdBy: maker.key?.id,
      expireTime: maker.key?.expireTime,
    });
    await made({ expiresIn: { seconds: 3599n } });
    expect(await failureOf(made({ expiresIn: { seconds: 3601n } }))).toMatchObject({
      violations: [['expires_in', 'too_big']],
    });
    expect((await bootstrapKey()).createdBy).toBe('');
  });

  it('revokes a key that made others with these, or not at all', async () => {
    const make = async (secret: string, expiresIn?: bigint) => {
      const wanted = { name: 'k', scopes: ['keys:write'], project: '' };
      return keys(secret).createKey(
        expiresIn === undefined ? wanted : { ...wanted, expiresIn: { seconds: expiresIn } },
      );
    };
    const maker = await make(rpc.key);
    const child = await make(maker.secret);
    const grandchild = await make(child.secret);
    const keyId = maker.key?.id ?? '';
    const left = async () => (await keys(rpc.key).listKeys({})).keys.map(({ id }) => id);

    const ids = `(${child.key?.id}|${grandchild.key?.id})`;
    const named = new RegExp(
      `^The key made keys that still work: ${ids}, ${ids}; revoke them, too, with children=revoke$`,
    );
    expect(await failureOf(keys(rpc.key).deleteKey({ keyId }))).toMatchObject({
      reason: 'CONFLICT',
      message: expect.stringMatching(named),
    });
    expect(await left()).toContain(keyId);
    await keys(rpc.key).deleteKey({ keyId, revokeChildren: true });

    expect(await left()).not.toEqual(expect.arrayContaining([keyId]));
    for (const { secret } of [maker, child, grandchild])
      expect(await failureOf(keys(secret).listKeys({}))).toMatchObject({ reason: 'INVALID_KEY' });
  });

  it('revokes a key without these if they have ended', async () => {
    const maker = await keys(rpc.key).createKey({ name: 'maker', scopes: ['keys:write'] });
    const soon = { seconds: 1n };
    await keys(maker.secret).createKey({ name: 'short', scopes: ['keys:write'], expiresIn: soon });
    await rpc.database.execute(`update api_keys set expires_at = now() where name = 'short'`);

    await keys(rpc.key).deleteKey({ keyId: maker.key?.id ?? '' });
  });

  it('leaves no key that is made while its maker is revoked', async () => {
    const maker = await keys(rpc.key).createKey({ name: 'maker', scopes: ['keys:write'] });
    const making = Array.from({ length: 20 }, () =>
      keys(maker.secret).createKey({ name: 'raced', scopes: ['keys:write'] }),
    );
    await making[0];

    const revoked = keys(rpc.key).deleteKey({ keyId: maker.key?.id ?? '', revokeChildren: true });
    await Promise.allSettled([...making, revoked]);

    await revoked;
    const rows = await rpc.database.select(`select id from api_keys where name = 'raced'`);
    expect(rows).toEqual([]);
  });

  it('lets a key revoke only keys that may not do more', async () => {
    const weak = await rpc.givenKey({ scopes: ['keys:write', 'forms:read'], project: 'default' });
    const bootstrap = await bootstrapKey();
    const reader = await keys(rpc.key).createKey({ name: 'r', scopes: ['forms:read', 'submissions:read'] });
    const revoke = (keyId = '') => failureOf(keys(weak).deleteKey({ keyId }));

    expect(await revoke(bootstrap.id)).toMatchObject({ reason: 'INSUFFICIENT_SCOPE', requiredScope: '*' });
    expect(await revoke(reader.key?.id)).toMatchObject({
      requiredScope: 'submissions:read',
      message: 'The API key lacks the scope submissions:read, which is needed to revoke a key that has it',
    });
    const equal = await keys(rpc.key).createKey({ name: 'e', scopes: ['forms:read'] });
    await keys(weak).deleteKey({ keyId: equal.key?.id ?? '' });
  });

  it('refuses strangers and keys without the scope', async () => {
    const weak = await rpc.givenKey({ scopes: ['forms:read'] });

    expect(await failureOf(keys().listKeys({}))).toMatchObject({ reason: 'MISSING_KEY' });
    expect(await failureOf(keys(weak).createKey({ name: 'k', scopes: ['forms:read'] }))).toMatchObject({
      reason: 'INSUFFICIENT_SCOPE',
      requiredScope: 'keys:write',
    });
    expect(await failureOf(keys(weak).deleteKey({ keyId: 'x' }))).toMatchObject({
      reason: 'INSUFFICIENT_SCOPE',
    });
  });

  it('lists and deletes only the keys of the project', async () => {
    const project = await rpc.givenKey({ project: 'isolated' });
    const [key] = (await keys(project).listKeys({})).keys;

    expect((await keys(project).listKeys({})).keys).toHaveLength(1);
    expect(await failureOf(keys(rpc.key).deleteKey({ keyId: key?.id ?? '' }))).toMatchObject({
      reason: 'NOT_FOUND',
    });
    await keys(project).listKeys({});
  });

  it('lists the keys of the project page by page, newest first', async () => {
    const project = await rpc.givenKey({ project: 'many' });
    const names = Array.from({ length: 20 }, (_, index) => `key ${index}`);
    for (const name of names) {
      now += 1;
      await keys(project).createKey({ name, scopes: ['forms:read'] });
    }
    const list = (request: object) => keys(project).listKeys(request);

    const first = await list({ pageSize: 20 });
    const second = await list({ pageSize: 20, pageToken: first.nextPageToken });
    const all = await list({});
    const most = await list({ pageSize: 500 });

    expect(first.keys.map(({ name }) => name)).toEqual(names.toReversed());
    expect(second.keys.map(({ name }) => name)).toEqual(['test']);
    expect([second.nextPageToken, all.nextPageToken, all.keys.length]).toEqual(['', '', 21]);
    expect(most).toEqual(all);
    expect(await failureOf(list({ pageToken: 'wh_1' }))).toMatchObject({ reason: 'BAD_REQUEST' });
    expect(await failureOf(list({ pageSize: -1 }))).toMatchObject({ reason: 'BAD_REQUEST' });
  });

  it('stops a deleted key at once here, and within a second in another process', async () => {
    const other = await servicesOn(rpc.database, { now: () => now });
    const made = await keys(rpc.key).createKey({ name: 'short-lived', scopes: ['forms:read'] });
    const here = createClient(FormsService, rpc.as(made.secret));
    const there = createClient(FormsService, other.as(made.secret));
    await Promise.all([here.listForms({}), there.listForms({})]);

    await keys(rpc.key).deleteKey({ keyId: made.key?.id ?? '' });

    expect(await failureOf(here.listForms({}))).toMatchObject({ reason: 'INVALID_KEY' });
    now += 1000;
    expect(await failureOf(there.listForms({}))).toMatchObject({ reason: 'INVALID_KEY' });
    expect(await failureOf(keys(rpc.key).deleteKey({ keyId: made.key?.id ?? '' }))).toMatchObject({
      reason: 'NOT_FOUND',
    });
    await other.close();
  });

  it('does not take an expired key', async () => {
    const before = now;
    now -= 10_000;
    const request = { name: 'k', scopes: ['forms:read'], expiresIn: { seconds: 5n } };
    const { secret } = await keys(rpc.key).createKey(request);
    now = before;

    expect(await failureOf(createClient(FormsService, rpc.as(secret)).listForms({}))).toMatchObject({
      reason: 'INVALID_KEY',
    });
  });

  it('notes when a key was last used', async () => {
    const secret = await rpc.givenKey({ project: 'last-use' });

    await createClient(FormsService, rpc.as(secret)).listForms({});

    await expect
      .poll(async () => (await keys(secret).listKeys({})).keys[0]?.lastUseTime)
      .toMatchObject({ nanos: expect.any(Number) });
  });
});

describe.each(engines)('the first key on %s', (engine) => {
  it('is made once, however many instances start at once', async () => {
    await using database = await openTestDatabase(engine);
    const start = () => makeFirstKey(makerOn(database));

    const shown = await Promise.all([start(), start(), start()]);
    const later = await start();

    expect(shown.filter((secret) => secret !== undefined)).toHaveLength(1);
    expect(later).toBeUndefined();
    expect(await database.select('select scopes, name from api_keys')).toHaveLength(1);
  });

  it('is the one that was given', async () => {
    await using database = await openTestDatabase(engine);
    const given = 'a-key-of-at-least-thirty-two-characters';

    const first = await registerBootstrapKey(makerOn(database), given);

    expect(first).toEqual({ isRevoked: false });
    const rpc = await servicesOn(database);
    await createClient(FormsService, rpc.as(given)).listForms({});
    await rpc.close();
  });

  it('is registered beside other keys if the database has never seen it, once', async () => {
    await using database = await openTestDatabase(engine);
    const given = 'a-key-of-at-least-thirty-two-characters';
    await makeFirstKey(makerOn(database));

    const start = () => registerBootstrapKey(makerOn(database), given);
    const starts = [...(await Promise.all([start(), start()])), await start()];

    expect(starts).toEqual(Array(3).fill({ isRevoked: false }));
    expect(await database.select('select name from api_keys order by name collate "C"')).toEqual([
      { name: 'BOOTSTRAP_API_KEY' },
      { name: 'first key' },
    ]);
  });

  it('stays revoked, though it is the only one', async () => {
    await using database = await openTestDatabase(engine);
    const given = 'a-key-of-at-least-thirty-two-characters';
    await registerBootstrapKey(makerOn(database), given);
    const rpc = await servicesOn(database);
    const { keys: listed } = await createClient(KeysService, rpc.as(given)).listKeys({});
    const id = listed.find(({ last4 }) => last4 === given.slice(-4))?.id ?? '';
    await createClient(KeysService, rpc.as(given)).deleteKey({ keyId: id });

    const again = await registerBootstrapKey(makerOn(database), given);

    expect(again).toEqual({ isRevoked: true });
    expect(await failureOf(createClient(FormsService, rpc.as(given)).listForms({}))).toMatchObject({
      reason: 'INVALID_KEY',
    });
    await rpc.close();
  });
});

function makerOn(database: Database) {
  const log = pino({ level: 'silent' });
  return { database, auditWriter: new AuditWriter({ database, now: Date.now, log }), now: Date.now };
}

function replaceBigint(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value;
}
