import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { removeOld } from '../../../src/delivery/sweeps/sweeps.ts';
import { firstHashOf, type NewEntry, uncalledEntry } from '../../../src/domain/audit/entry.ts';
import { checkChain } from '../../../src/services/admin/audit.ts';
import {
  appendEntries,
  type EntryFilter,
  type EntryPlace,
  findNextChain,
  listEntries,
  readChain,
} from '../../../src/store/audit/audit-log.ts';
import { createAuditWriter } from '../../../src/store/audit/audit-writer.ts';
import { type Database, openDatabase } from '../../../src/store/database/database.ts';
import { DatabaseUnavailable } from '../../../src/store/database/faults.ts';
import { createServerDatabase, engines, openTestDatabase } from '../../support/database.ts';
import { startDelivery } from '../../support/delivery.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
const START = Date.parse('2026-11-22T10:00:00Z');

describe.each(engines)('the audit log on %s', (engine) => {
  it('chains the entries of each project', async () => {
    await using database = await openTestDatabase(engine);

    await append(database, [entry('one'), entry('two'), entry('one')]);
    await append(database, [entry('one')]);

    const [first, second, third] = await readChain(database, 'one', { after: 0, limit: 10 });
    expect([first?.sequence, second?.sequence, third?.sequence]).toEqual([1, 2, 3]);
    expect(first?.previousHash).toBe(firstHashOf('one'));
    expect([second?.previousHash, third?.previousHash]).toEqual([first?.hash, second?.hash]);
    expect(await checkChain(database, 'one', undefined)).toEqual({
      checked: 3,
      next: null,
      problem: null,
      end: { from: 1, sequence: 3, hash: third?.hash },
    });
    expect(await chains(database)).toEqual(['one', 'two']);
  });

  it.each([
    ['a changed entry', `update audit_entries set actor = 'key:other' where sequence = 3`, 3],
    [
      'a changed time',
      `update audit_entries set created_at = created_at + interval '1 ms' where sequence = 3`,
      3,
    ],
    ['an entry that is gone', 'delete from audit_entries where sequence = 3', 3],
    ['a first entry that is gone', 'delete from audit_entries where sequence = 1', 1],
    ['a last entry that is gone', 'delete from audit_entries where sequence = 5', 5],
    [
      'a last entry that is gone, with its place',
      `with gone as (delete from audit_entries where sequence = 5) update audit_chains set sequence = 4`,
      4,
    ],
    [
      'an entry that is replaced with its hash',
      `update audit_entries set actor = 'key:other', hash = 'made up' where sequence = 3`,
      3,
    ],
    ['an entry that is put in', `update audit_entries set sequence = 6 where sequence = 5`, 5],
    [
      'an entry beyond the end',
      `update audit_chains set sequence = 4, hash = (
      select hash from audit_entries where sequence = 4)`,
      5,
    ],
    ['an end that is gone', `delete from audit_chains`, 0],
    ['another beginning', `update audit_chains set cut_hash = 'made up'`, 1],
  ])('shows %s', async (_what, change, sequence) => {
    await using database = await openTestDatabase(engine);
    await append(
      database,
      Array.from({ length: 5 }, () => entry('one')),
    );

    await database.execute(change);

    expect((await checkChain(database, 'one', undefined)).problem?.sequence).toBe(sequence);
    expect(await chains(database)).toEqual(['one']);
  });

  it('removes what is older than it may be, and can be checked all the same', async () => {
    await using database = await openTestDatabase(engine);
    const clock = { ms: START };
    await using delivery = startDelivery(database, {
      now: () => clock.ms,
      settings: { auditRetentionDays: 30 },
    });
    await append(database, [entry('one', START), entry('one', START), entry('two', START)]);
    clock.ms += 20 * DAY_MS;
    await append(database, [entry('one', clock.ms)]);

    await removeOld(delivery.options);
    const before = await readChain(database, 'one', { after: 0, limit: 10 });
    clock.ms += 11 * DAY_MS;
    await removeOld(delivery.options);

    const left = await readChain(database, 'one', { after: 0, limit: 10 });
    expect(before).toHaveLength(3);
    expect(left).toEqual(before.slice(2));
    const end = { from: 3, sequence: 3, hash: left[0]?.hash };
    expect(await checkChain(database, 'one', undefined)).toEqual({
      checked: 1,
      next: null,
      problem: null,
      end,
    });
    expect(await checkChain(database, 'two', undefined)).toMatchObject({ checked: 0, problem: null });
    await append(database, [entry('two', clock.ms)]);
    expect(await checkChain(database, 'two', undefined)).toMatchObject({ checked: 1, problem: null });
    await database.execute('delete from audit_entries where sequence = 3');
    expect((await checkChain(database, 'one', undefined)).problem).toEqual({
      sequence: 3,
      message: 'It is missing.',
    });
  });

  it('removes nothing behind an entry that may stay, though its own time is older', async () => {
    await using database = await openTestDatabase(engine);
    const clock = { ms: START + 31 * DAY_MS };
    await using delivery = startDelivery(database, {
      now: () => clock.ms,
      settings: { auditRetentionDays: 30 },
    });
    await append(database, [entry('one', START), entry('one', clock.ms), entry('one', START)]);

    await removeOld(delivery.options);

    const left = await readChain(database, 'one', { after: 0, limit: 10 });
    expect(left.map(({ sequence }) => sequence)).toEqual([2, 3]);
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

    const listed = (filter: EntryFilter) => listAll(database, filter, 2);

    expect(await listed({})).toEqual([4, 3, 2, 1]);
    expect(await listed({ actor: 'key:a' })).toEqual([3, 1]);
    expect(await listed({ action: 'submission.read' })).toEqual([4, 2]);
    expect(await listed({ action: 'submission.' })).toEqual([4, 3, 2]);
    expect(await listed({ action: 'submission' })).toEqual([]);
    expect(await listed({ resource: 'sub_1' })).toEqual([2]);
    expect(await listed({ resource: formId })).toEqual([3, 2, 1]);
    expect(await listed({ after: new Date(START + 1), before: new Date(START + 3) })).toEqual([3, 2]);
  });

  it('looks through a part for a page, and says where to go on', async () => {
    await using database = await openTestDatabase(engine);
    const rows = Array.from({ length: 5_000 }, () => entry('one', START));
    await append(database, [entry('one', START - 1, { actor: 'key:a' }), ...rows]);

    const page = await listEntries(database, 'one', { actor: 'key:a' }, { limit: 10 });

    expect(page).toEqual({ items: [], next: { createdAt: new Date(START).toISOString(), sequence: 2 } });
    expect(await listAll(database, { actor: 'key:a' }, 10)).toEqual([1]);
  });

  it('counts what is read again within a write, and keeps what the database does not take', async () => {
    await using database = await openTestDatabase(engine);
    let isAway = true;
    const lines: string[] = [];
    const log = pino({ level: 'error' }, { write: (line) => lines.push(line) });
    const counts = { stored: 0, failed: 0, lost: 0 };
    const writer = createAuditWriter({
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

    const stored = await readChain(database, 'one', { after: 0, limit: 10 });
    expect(stored.map(({ resource, count }) => [resource, count])).toEqual([
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
    const writer = createAuditWriter({ database, now: () => START, log, maxWaiting: 10 });

    for (let n = 0; n < 13; n += 1) writer.note(entry('one', START, { resource: `sub_${n}` }));
    await writer.flush();
    // PostgreSQL has no text with NUL.
    writer.note(entry('two', START, { resource: 'sub_\0' }));
    await writer.close();

    const [last] = (await listEntries(database, 'one', { action: 'audit.lost' }, { limit: 1 })).items;
    expect(last).toMatchObject({ sequence: 11, count: 3, actor: 'service' });
    expect(await checkChain(database, 'one', undefined)).toMatchObject({ checked: 11, problem: null });
    expect(await readChain(database, 'two', { after: 0, limit: 1 })).toEqual([]);
    expect(lines.map((line) => JSON.parse(line))).toEqual([
      expect.objectContaining({
        msg: 'Could not write the audit log: these entries are lost to it.',
        entries: [expect.objectContaining({ projectId: 'two', resource: 'sub_\0' })],
      }),
    ]);
  });
});

it('is one chain of a project, though two processes write it at once', async () => {
  await using server = await createServerDatabase();
  const open = () => openDatabase({ databaseUrl: server.databaseUrl, log: pino({ level: 'silent' }) });
  const [one, two] = await Promise.all([open(), open()]);
  try {
    const write = async (database: Database, name: string) => {
      for (let n = 0; n < 20; n += 1) {
        const projects = n % 2 === 0 ? ['one', 'two'] : ['two', 'one'];
        const changes = projects.map((project) => entry(project, START, { resource: `${name}_${n}` }));
        await Promise.all([append(database, changes), append(database, changes.slice(1)), sleep(1)]);
      }
    };
    await Promise.all([write(one, 'a'), write(two, 'b')]);

    for (const project of ['one', 'two']) {
      const { problem, checked } = await checkChain(one, project, undefined);
      expect([problem, checked]).toEqual([null, 60]);
    }
  } finally {
    await Promise.all([one.close(), two.close()]);
  }
});

function entry(projectId: string, at = START, more: Partial<NewEntry> = {}): NewEntry {
  return { ...uncalledEntry({ projectId, at, action: 'form.created' }), ...more };
}

function append(database: Database, entries: NewEntry[]): Promise<void> {
  return database.transaction((tx) => appendEntries(tx, entries));
}

/** The places of all entries of `one` that a filter lets through. */
async function listAll(database: Database, filter: EntryFilter, limit: number): Promise<number[]> {
  const found: number[] = [];
  let cursor: EntryPlace | undefined;
  for (;;) {
    const { items, next } = await listEntries(database, 'one', filter, { limit, cursor });
    found.push(...items.map(({ sequence }) => sequence));
    if (next === null) return found;
    cursor = next;
  }
}

async function chains(database: Database): Promise<string[]> {
  const found: string[] = [];
  for (let next = await findNextChain(database, null); next !== null; ) {
    found.push(next);
    next = await findNextChain(database, next);
  }
  return found;
}
