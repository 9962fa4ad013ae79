import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { removeOld } from '../../../src/delivery/sweeps/sweeps.ts';
import { type AuditEntry, type NewEntry, systemEntry } from '../../../src/domain/audit.ts';
import {
  AuditEntryEntity,
  type EntryFilter,
  type EntryPlace,
  insertEntries,
  listEntries,
} from '../../../src/store/audit/audit-log.ts';
import { AuditWriter } from '../../../src/store/audit/audit-writer.ts';
import { type Database, openDatabase } from '../../../src/store/database/database.ts';
import { DatabaseUnavailable } from '../../../src/store/database/faults.ts';
import { createServerDatabase, engines, openTestDatabase } from '../../support/database.ts';
import { startDelivery } from '../../support/delivery.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
const START = Date.parse('2026-11-22T10:00:00Z');

describe.each(engines)('the audit log on %s', (engine) => {
  it('removes what is older than it may be', async () => {
    await using database = await openTestDatabase(engine);
    const clock = { ms: START };
    await using delivery = startDelivery(database, {
      now: () => clock.ms,
      settings: { auditRetentionDays: 30 },
    });
    await append(database, [entry('one', START), entry('one', START), entry('two', START)]);
    clock.ms += 20 * DAY_MS;
    await append(database, [entry('one', clock.ms), entry('one', START)]);

    await removeOld(delivery.options);
    const before = await stored(database);
    clock.ms += 11 * DAY_MS;
    await removeOld(delivery.options);

    expect(before).toHaveLength(5);
    expect((await stored(database)).map(({ createdAt }) => createdAt.getTime())).toEqual([
      START + 20 * DAY_MS,
    ]);
  });

  it('writes a line of each entry once it is stored', async () => {
    await using database = await openTestDatabase(engine);
    const lines: string[] = [];
    const log = pino({ base: null, timestamp: false }, { write: (line) => lines.push(line) });
    const writer = new AuditWriter({ database, now: () => START, log, entryLog: log });

    const undone = database.transaction(async (tx) => {
      await writer.store(tx, entry('one', START, { resource: 'sub_1' }));
      throw new Error('undone');
    });
    await expect(undone).rejects.toThrow('undone');
    let linesBefore = -1;
    await database.transaction(async (tx) => {
      await writer.store(tx, entry('one', START, { resource: 'sub_2' }));
      linesBefore = lines.length;
    });
    writer.note(entry('one', START, { resource: 'sub_3' }));
    await writer.close();

    expect(linesBefore).toBe(0);
    const createdAt = new Date(START).toISOString();
    expect(lines.map((line) => JSON.parse(line))).toEqual(
      ['sub_2', 'sub_3'].map((resource) => ({
        ...entry('one', START, { resource }),
        createdAt,
        level: 30,
        msg: 'audit',
      })),
    );
  });

  it('lists by time, actor, action, kind and thing, newest first, page by page', async () => {
    await using database = await openTestDatabase(engine);
    const formId = 'form_1';
    await append(database, [
      entry('one', START, { actor: 'key:a', action: 'form.created', formId }),
      entry('one', START + 1, { actor: 'key:b', action: 'submission.read', resource: 'sub_1', formId }),
      entry('one', START + 2, { actor: 'key:a', action: 'submission.listed', formId }),
      entry('one', START + 3, { actor: 'service', action: 'submission.read', resource: 'sub_2' }),
      entry('two', START + 3, { actor: 'key:a', formId }),
    ]);

    /** By how many milliseconds after `START` they were done. */
    const listed = async (filter: EntryFilter) =>
      (await listAll(database, filter, 2)).map(({ createdAt }) => createdAt.getTime() - START);

    expect(await listed({})).toEqual([3, 2, 1, 0]);
    expect(await listed({ actor: 'key:a' })).toEqual([2, 0]);
    expect(await listed({ action: 'submission.read' })).toEqual([3, 1]);
    expect(await listed({ action: 'submission.' })).toEqual([3, 2, 1]);
    expect(await listed({ action: 'submission' })).toEqual([]);
    expect(await listed({ resource: 'sub_1' })).toEqual([1]);
    expect(await listed({ resource: formId })).toEqual([2, 1, 0]);
    expect(await listed({ after: new Date(START + 1), before: new Date(START + 3) })).toEqual([2, 1]);
  });

  it('lists what was done at the same time by the order in which it was stored', async () => {
    await using database = await openTestDatabase(engine);
    const resources = Array.from({ length: 7 }, (_, n) => `sub_${n}`);
    for (const part of [resources.slice(0, 4), resources.slice(4)])
      await append(
        database,
        part.map((resource) => entry('one', START, { resource })),
      );

    const listed = await listAll(database, {}, 3);

    expect(listed.map(({ resource }) => resource)).toEqual(resources.toReversed());
  });

  it('takes the entries of former versions between its own', async () => {
    await using database = await openTestDatabase(engine);
    await append(database, [entry('one', START)]);
    await database.execute(
      `insert into audit_entries (project_id, sequence, created_at, actor, action, count, previous_hash, hash)
       values ('one', 1, $1, 'service', 'form.closed', 1, 'a', 'b')`,
      [new Date(START + 1).toISOString()],
    );
    await append(database, [entry('one', START + 2)]);

    expect((await listAll(database, {}, 1)).map(({ action }) => action)).toEqual([
      'form.created',
      'form.closed',
      'form.created',
    ]);
  });

  it('looks through a part for a page, and says where to go on', async () => {
    await using database = await openTestDatabase(engine);
    const rows = Array.from({ length: 5_000 }, () => entry('one', START));
    await append(database, [entry('one', START - 1, { actor: 'key:a' }), ...rows]);

    const [second] = await database.select('select id from audit_entries order by id offset 1 limit 1');

    const page = await listEntries(database, 'one', { actor: 'key:a' }, { limit: 10 });

    const next = { createdAt: new Date(START).toISOString(), id: Number(second?.id) };
    expect(page).toEqual({ items: [], next });
    expect(await listAll(database, { actor: 'key:a' }, 10)).toEqual([
      entry('one', START - 1, { actor: 'key:a' }),
    ]);
  });

  it('counts what is read again within a write, and keeps what the database does not take', async () => {
    await using database = await openTestDatabase(engine);
    let isAway = true;
    const lines: string[] = [];
    const log = pino({ level: 'error' }, { write: (line) => lines.push(line) });
    const counts = { stored: 0, failed: 0, lost: 0 };
    const writer = new AuditWriter({
      database: {
        transaction: (work) =>
          isAway ? Promise.reject(new DatabaseUnavailable(new Error('away'))) : database.transaction(work),
      },
      now: () => START,
      log,
      metrics: { onAudit: (outcome, count) => (counts[outcome] += count) },
    });

    for (let n = 0; n < 3; n += 1) writer.note(entry('one', START + n, { resource: 'sub_1' }));
    writer.note(entry('one', START, { resource: 'sub_2' }));
    await writer.flush();
    writer.note(entry('one', START, { resource: 'sub_1' }));
    isAway = false;
    await writer.close();

    expect((await stored(database)).map(({ resource, count }) => [resource, count])).toEqual([
      ['sub_1', 4],
      ['sub_2', 1],
    ]);
    expect(lines.map((line) => JSON.parse(line).msg)).toEqual([
      'Could not write the audit log; trying again.',
    ]);
    expect(counts).toEqual({ stored: 2, failed: 2, lost: 0 });
  });

  it('says how many reads found no room, and writes into the log what it can never store', async () => {
    await using database = await openTestDatabase(engine);
    const lines: string[] = [];
    const log = pino({ level: 'error' }, { write: (line) => lines.push(line) });
    const writer = new AuditWriter({ database, now: () => START, log, maxWaiting: 10 });

    for (let n = 0; n < 13; n += 1) writer.note(entry('one', START, { resource: `sub_${n}` }));
    await writer.flush();
    // PostgreSQL has no text with NUL.
    for (const resource of ['sub_1', 'sub_2', 'sub_\0', 'sub_3'])
      writer.note(entry('two', START, { resource }));
    await writer.close();

    const [last] = (await listEntries(database, 'one', { action: 'audit.lost' }, { limit: 1 })).items;
    expect(last).toMatchObject({ count: 3, actor: 'service' });
    const entries = await stored(database);
    expect(entries.filter(({ projectId }) => projectId === 'one')).toHaveLength(11);
    const others = entries.filter(({ projectId }) => projectId === 'two');
    expect(others.map(({ resource }) => resource)).toEqual(['sub_1', 'sub_2', 'sub_3']);
    expect(lines.map((line) => JSON.parse(line))).toEqual([
      expect.objectContaining({
        msg: 'Could not write the audit log: these entries are lost to it.',
        entries: [expect.objectContaining({ projectId: 'two', resource: 'sub_\0' })],
      }),
    ]);
  });
});

it('lets nobody wait for who stores an entry', async () => {
  await using server = await createServerDatabase();
  const open = () => openDatabase({ databaseUrl: server.databaseUrl, log: pino({ level: 'silent' }) });
  const [one, two] = await Promise.all([open(), open()]);
  try {
    await one.transaction(async (tx) => {
      await insertEntries(tx, [entry('one')]);
      await append(two, [entry('one')]);
      await append(one, [entry('one')]);
      expect(await stored(two)).toHaveLength(2);
    });

    expect(await stored(two)).toHaveLength(3);
  } finally {
    await Promise.all([one.close(), two.close()]);
  }
});

function entry(projectId: string, at = START, more: Partial<NewEntry> = {}): NewEntry {
  return { ...systemEntry({ projectId, at, action: 'form.created' }), ...more };
}

function append(database: Database, entries: NewEntry[]): Promise<void> {
  return database.transaction((tx) => insertEntries(tx, entries));
}

/** All entries, in the order in which they were stored. */
async function stored(database: Database): Promise<AuditEntry[]> {
  return database.read((em) => em.findAll(AuditEntryEntity, { orderBy: { id: 'asc' } }));
}

/** All entries of `one` that a filter lets through, page by page. */
async function listAll(database: Database, filter: EntryFilter, limit: number): Promise<AuditEntry[]> {
  const found: AuditEntry[] = [];
  let cursor: EntryPlace | undefined;
  for (;;) {
    const { items, next } = await listEntries(database, 'one', filter, { limit, cursor });
    found.push(...items);
    if (next === null) return found;
    cursor = next;
  }
}
