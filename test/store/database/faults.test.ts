import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { type Database, openDatabase, type Queries } from '../../../src/store/database/database.ts';
import { findDueWork } from '../../../src/store/deliveries/due.ts';
import { listDeliveries } from '../../../src/store/deliveries/log.ts';
import { listEventsById, listWaitingEvents } from '../../../src/store/events.ts';
import { findForm, findFormState } from '../../../src/store/forms/forms.ts';
import { listAskedFields } from '../../../src/store/forms/versions.ts';
import { InstallationEntity } from '../../../src/store/installation.ts';
import { findValidKey } from '../../../src/store/keys.ts';
import { isMailStopped } from '../../../src/store/mail/mail-recipients.ts';
import { listOwners } from '../../../src/store/owners/owners.ts';
import { findAnySession } from '../../../src/store/sessions/sessions.ts';
import { listSubmissions } from '../../../src/store/submissions/submission-pages.ts';
import { findSubmission } from '../../../src/store/submissions/submissions.ts';
import { createServerDatabase } from '../../support/database.ts';
import { runOn } from '../../support/postgres.ts';

/** Each way in which work reaches a connection: what writes a row of this name. */
const writers: [string, (db: Queries, name: string) => Promise<unknown>][] = [
  ['the entity manager', (db, name) => db.write((em) => em.insert(InstallationEntity, { name, value: '' }))],
  [
    'Kysely',
    (db, name) =>
      db.write((em) =>
        em
          .getKysely<{ installation: { name: string; value: string } }>()
          .insertInto('installation')
          .values({ name, value: '' })
          .execute(),
      ),
  ],
  ['a statement', (db, name) => db.execute("insert into installation values ($1, '')", [name])],
];
const paths: [string, (database: Database, name: string) => Promise<unknown>][] = [
  ...writers,
  ...writers.map(([way, write]): (typeof paths)[number] => [
    `${way} in a transaction`,
    (database, name) => database.transaction((tx) => write(tx, name)),
  ]),
];

describe('a connection to a server that has become read-only', () => {
  it.each(paths)('is given up for another one by %s', async (_way, write) => {
    await using server = await openOneConnection();
    await server.database.execute('set default_transaction_read_only = on');

    await write(server.database, 'kept');

    expect(await server.names()).toEqual(['kept']);
  });
});

describe('a commit that the standby has not confirmed', () => {
  it.each(paths)('has an unknown outcome for %s', async (_way, write) => {
    await using server = await openOneConnection();
    // What PostgreSQL says when its wait for the standby is cancelled, at the same moment: the commit.
    await runOn(
      server.databaseUrl,
      `create function doubt() returns trigger language plpgsql as
         $$ begin raise warning 'canceling wait for synchronous replication due to user request'; return null; end $$;
       create constraint trigger doubt after insert on installation deferrable initially deferred
         for each row execute function doubt()`,
    );

    const outcome = write(server.database, 'doubtful');

    await expect(outcome).rejects.toMatchObject({ name: 'DatabaseUnavailable', cause: { code: '08007' } });
    expect(await server.names()).toEqual(['doubtful']);
    expect(await server.database.isReady()).toBe(true);
  });
});

describe('a connection that the server ends', () => {
  it.each(writers)('before the commit makes the transaction run again, with %s', async (_way, write) => {
    await using server = await openOneConnection();
    const tries = Array.from({ length: 3 }, () => 0);

    for (const round of tries.keys()) {
      await server.database.transaction(async (tx) => {
        tries[round] = (tries[round] ?? 0) + 1;
        await write(tx, `kept ${round}`);
        if (tries[round] === 1) await server.cutOff(tx);
        await tx.select('select 1');
      });
    }

    expect(tries).toEqual([2, 2, 2]);
    expect(await server.names()).toEqual(['kept 0', 'kept 1', 'kept 2']);
  });

  it('during the commit leaves an unknown outcome, and does not make the transaction run again', async () => {
    await using server = await openOneConnection();
    await runOn(
      server.databaseUrl,
      `create function cut() returns trigger language plpgsql as
         $$ begin perform pg_terminate_backend(pg_backend_pid()); return null; end $$;
       create constraint trigger cut after insert on installation deferrable initially deferred
         for each row execute function cut()`,
    );
    let tries = 0;

    for (const name of ['one', 'two', 'three']) {
      const cut = server.database.transaction(async (tx) => {
        tries += 1;
        await tx.execute("insert into installation values ($1, '')", [name]);
      });
      await expect(cut).rejects.toMatchObject({ name: 'DatabaseUnavailable' });
    }

    expect(tries).toBe(3);
    expect(await server.database.isReady()).toBe(true);
  });

  it('before the transaction begins makes it begin on another one', async () => {
    await using server = await openOneConnection();
    for (const name of ['one', 'two', 'three']) {
      await server.cutOffIdle();
      await server.database.transaction((tx) =>
        tx.execute("insert into installation values ($1, '')", [name]),
      );
    }

    expect(await server.names()).toEqual(['one', 'three', 'two']);
  });

  it('makes a statement that only reads run again, and one that changes something not', async () => {
    await using server = await openOneConnection();
    await runOn(server.databaseUrl, 'create sequence tries');
    const cutOnce = `select case when nextval('tries') % 2 = 1 then pg_terminate_backend(pg_backend_pid()) end as cut`;

    const read = await server.database.select(cutOnce);
    const changed = server.database.execute(cutOnce);

    expect(read).toEqual([{ cut: null }]);
    await expect(changed).rejects.toMatchObject({ name: 'DatabaseUnavailable' });
    expect(await server.database.select('select last_value::int as tries from tries')).toEqual([
      { tries: 3 },
    ]);
  });
});

describe('a look-up whose connection the server ends', () => {
  const lookUps: [string, string, (db: Queries) => Promise<unknown>][] = [
    ['findFormState', 'forms', (db) => findFormState(db, 'form_one')],
    ['findForm', 'forms', (db) => findForm(db, 'prj_one', 'form_one')],
    ['listOwners', 'forms', (db) => listOwners(db, { projectId: 'prj_one', formId: null })],
    ['listAskedFields', 'form_versions', (db) => listAskedFields(db, 'form_one')],
    ['findAnySession', 'sessions', (db) => findAnySession(db, 'sess_one')],
    ['findSubmission', 'submissions', (db) => findSubmission(db, 'prj_one', 'sub_one')],
    ['listSubmissions', 'submissions', (db) => listSubmissions(db, 'form_one', {}, { limit: 1 })],
    ['listWaitingEvents', 'events', (db) => listWaitingEvents(db, { since: '', limit: 1, maxBytes: 1 })],
    ['listEventsById', 'events', (db) => listEventsById(db, ['evt_one'])],
    ['findDueWork', 'events', (db) => findDueWork(db, { event: '', due: new Date(0), lease: new Date(0) })],
    ['listDeliveries', 'deliveries', (db) => listDeliveries(db, { formId: 'form_one' }, { limit: 1 })],
    [
      'isMailStopped',
      'mail_stops',
      (db) => isMailStopped(db, { address: 'a@example.com', formId: 'form_one' }),
    ],
    ['findValidKey', 'api_keys', (db) => findValidKey(db, { secretHash: 'hash' })],
  ];

  it.each(lookUps)('is made again: %s', async (_name, table, lookUp) => {
    await using server = await openOneConnection();
    await runOn(
      server.databaseUrl,
      `create sequence reads;
       alter table ${table} rename to kept;
       create function cut_first() returns setof kept language plpgsql volatile as $$
         begin
           if nextval('reads') = 1 then perform pg_terminate_backend(pg_backend_pid()); end if;
           return query select * from kept;
         end $$;
       create view ${table} as select * from cut_first()`,
    );

    await lookUp(server.database);

    const [reads] = await server.database.select('select last_value::int as last from reads');
    expect(reads?.last).toBeGreaterThan(1);
  });
});

/** A database with a pool of a single connection: what leaks one, or keeps a bad one, fails. */
async function openOneConnection() {
  const server = await createServerDatabase();
  const database = await openDatabase({
    databaseUrl: server.databaseUrl,
    poolSize: 1,
    log: pino({ level: 'silent' }),
  });
  const cut = (condition: string) =>
    runOn(server.adminUrl, `select pg_terminate_backend(pid) from pg_stat_activity where ${condition}`);
  const name = new URL(server.databaseUrl).pathname.slice(1);
  return {
    database,
    databaseUrl: server.databaseUrl,
    names: async () =>
      (await database.select('select name from installation order by name')).map((row) => row.name),
    cutOff: async (tx: Queries) => {
      const [row] = await tx.select('select pg_backend_pid() as pid');
      await cut(`pid = ${Number(row?.pid)}`);
    },
    cutOffIdle: () => cut(`datname = '${name}'`),
    async [Symbol.asyncDispose]() {
      await database.close();
      await server[Symbol.asyncDispose]();
    },
  };
}
