import { createHmac } from 'node:crypto';
import { openAsBlob } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Database, openDatabase } from '../../src/store/database/database.ts';
import { migrations } from '../../src/store/migrations/index.ts';
import { createServerDatabase } from '../support/database.ts';
import { makeEarlierTables } from '../support/earlier-tables.ts';
import { preparedPglite } from '../support/prepared.ts';
import { type Received, startReceiver } from '../support/receiver.ts';
import { startService } from '../support/server.ts';
import { until } from '../support/until.ts';
import {
  digestOfTables,
  type Fixture,
  FORM_KEY,
  KEY,
  placeOf,
  RECEIVER,
  type Row,
  readFixture,
  readStatements,
  WEBHOOK_SECRET,
} from './fixture.ts';
import { answersOf, mailedForm } from './rows.ts';

const names = migrations.map(({ name }) => name);

/** For each migration, the oldest version that may serve beside it, named by the migration that it came with. */
const oldestBeside = names.map(
  (_, place) => migrations.slice(0, place + 1).findLast(({ runsBeside }) => runsBeside)?.runsBeside ?? '',
);

/**
 * The rows of a fixture pass through every later migration, and a service looks at those of each fifth, and of the last;
 * with TEST_UPGRADES=all, as `.ci/run all` has it, at those of each.
 */
const looksAt = (name = '') =>
  process.env.TEST_UPGRADES === 'all' || name === names.at(-1) || placeOf(name) % 5 === 0;

describe('a database that has rows and was left at', () => {
  let embedded: Database;
  beforeAll(async () => {
    const { dump } = await preparedPglite();
    embedded = await openDatabase({ dump: await openAsBlob(dump), log: console });
  });
  afterAll(() => embedded.close());

  it.each(names.filter(looksAt))('%s is brought up to date, and serves', (name) =>
    checkUpgrade(embedded, name),
  );

  it.each(names.filter((name) => !looksAt(name)))(
    '%s is brought up to date, with what it had',
    async (name) => {
      const { before, after } = await upgrade(embedded, name, RECEIVER);

      for (const table of ['submissions', 'forms', 'sessions'] as const) {
        expect(after[table]).toHaveLength(before[table].length);
        expect(after[table]).toEqual(expect.arrayContaining(before[table]));
      }
      expect(idsOf(after.pending, after.finished)).toEqual(
        expect.arrayContaining(idsOf(before.pending, before.finished)),
      );
    },
  );

  it.each([names.at(0), names.at(-1)])(
    '%s is brought up to date, and serves, on PostgreSQL',
    async (name) => {
      await using server = await createServerDatabase();
      const database = await openDatabase({ databaseUrl: server.databaseUrl, log: console });
      try {
        await checkUpgrade(database, name);
      } finally {
        await database.close();
      }
    },
  );
});

it.each(names)(
  '%s says which versions it runs beside: itself or earlier ones, and none that another excluded',
  (name) => {
    const place = placeOf(name);
    const oldest = placeOf(oldestBeside[place] ?? '');

    expect(oldest).toBeGreaterThanOrEqual(place === 0 ? 0 : placeOf(oldestBeside[place - 1] ?? ''));
    expect(oldest).toBeLessThanOrEqual(place);
  },
);

it('the tables serve the versions that may run beside this one, too', async () => {
  const oldest = placeOf(oldestBeside.at(-1) ?? '');
  const statements = readStatements().filter(({ migration }) => placeOf(migration) >= oldest);
  await using server = await createServerDatabase();
  const database = await openDatabase({ databaseUrl: server.databaseUrl, poolSize: 1, log: console });
  const needed = await neededColumns(database);
  const failures: string[] = [];

  for (const { migration, sql } of statements) {
    // PostgreSQL looks up every name and type when it prepares, and runs nothing.
    await database.execute(`prepare recorded as ${sql}`).then(
      () => database.execute('deallocate recorded'),
      (error: unknown) => failures.push(`${migration}: ${String(error)} in ${sql}`),
    );
    for (const column of missingColumns(sql, needed)) failures.push(`${migration}: no ${column} in ${sql}`);
  }
  await database.close();

  expect(statements.length).toBeGreaterThan(80);
  expect(failures).toEqual([]);
});

/** Has this version take over a database of an earlier one. Returns what it had, and what it has. */
async function upgrade(database: Database, name: string, receiverUrl: string) {
  const fixture = fixtureOf(name);
  const run = (sql: string, params: unknown[] = []) => database.execute(sql, params);
  await makeEarlierTables(run, name);
  expect(
    await digestOfTables(run),
    `${name} is no longer what it was: an earlier migration was changed`,
  ).toBe(fixture.digest);
  for (const insert of insertsOf(fixture, receiverUrl)) await database.execute(insert);
  const before = await rowsOf(database, name);
  await database.migrate();
  expect(await database.schemaDifference()).toBe('');
  return { fixture, before, after: await rowsOf(database, names.at(-1) ?? '') };
}

/** Looks from outside at all of a database that was brought up to date. */
async function checkUpgrade(database: Database, name = ''): Promise<void> {
  await using receiver = await startReceiver();
  const { fixture, before } = await upgrade(database, name, receiver.url);
  let behind = 0;
  await using service = await startService({
    database,
    now: () => Date.now() - behind,
    env: { BOOTSTRAP_API_KEY: KEY, DELIVERY_RETENTION_DAYS: '3650', WEBHOOK_RETRY_SCHEDULE: '0,60' },
  });

  const readPlainly = async (path: string) => {
    const reply = await fetch(service.url + path, { headers: { authorization: `Bearer ${KEY}` } });
    return { json: await reply.json() };
  };
  for (const { id, answers, status, form_id } of before.submissions) {
    const { json } = await service.get(`/v1/submissions/${id}`);
    // The demo form belongs to nobody's key.
    if (form_id === 'form_demo') expect(json.error.code).toBe('not_found');
    else expect(json.submission).toMatchObject({ id, answers, status });
  }
  for (const { id, status, name: title } of before.forms) {
    if (id === 'form_demo') continue;
    // The API description allows no http:// address, which its webhook has.
    const read = title === 'Second version' ? readPlainly : service.get;
    expect((await read(`/v1/forms/${id}`)).json.form).toMatchObject({ id, status, name: title });
  }
  for (const { id, open, prefill, metadata, partial_answers } of before.sessions) {
    const { json } = await service.get(`/v1/sessions/${id}`);
    expect(json.session).toMatchObject({
      id,
      prefill,
      metadata,
      ...(partial_answers !== null && { partial_answers }),
    });
    expect(json.session.status === 'open' || json.session.status === 'opened').toBe(open);
    const form = before.forms.find((each) => each.id === json.session.form_id);
    const answers = form?.name === 'May we?' ? { may_we: true } : { email: 'at-last@example.com' };
    if (open) expect((await service.post(`/v1/sessions/${id}/submit`, { answers })).status).toBe(201);
  }

  const waiting = before.pending.filter(({ channel }) => channel === 'webhook');
  expect(waiting.length).toBeGreaterThan(3);
  const pending = () => waiting.filter(({ event_id }) => !arrived(receiver.received, event_id));
  await until(
    () => pending().length === 0,
    15_000,
    () => JSON.stringify(pending()),
  );
  for (const { headers, body } of receiver.received) {
    const [, t = '', v1 = ''] = /^t=(\d+), v1=([0-9a-f]+)/.exec(String(headers['x-service-signature'])) ?? [];
    expect(createHmac('sha256', WEBHOOK_SECRET).update(`${t}.${body}`).digest('hex')).toBe(v1);
  }
  await until(async () => (await service.mails()).some((mail) => mail.includes('late@example.com')));
  // Their bytes are not in this folder, which is the same as removed.
  await until(async () => (await database.select('select from removals')).length === 0);
  const { webhooks } = (await service.get('/v1/webhooks')).json;
  const listed: Row[] = [];
  for (const { id } of webhooks) {
    listed.push(...(await service.get(`/v1/webhooks/${id}/deliveries?limit=100`)).json.deliveries);
  }
  // Callbacks belong to no webhook.
  for (const { id } of before.forms.filter(({ name: title }) => title === 'May we?')) {
    listed.push(...(await service.get(`/v1/forms/${id}/deliveries?limit=100`)).json.deliveries);
  }
  for (const { id, status, attempt_count: attempts } of before.finished) {
    const delivery = listed.find((each) => each.id === id);
    expect(delivery).toMatchObject({ status });
    expect(delivery?.attempts).toHaveLength(Number(attempts));
  }

  const { activateUrl, revokedKey, ownerCookie } = fixture.known;
  expect((await service.get('/v1/forms', { key: revokedKey })).status).toBe(401);
  expect((await service.post(activateUrl, { email: 'owner@example.com' }, { key: null })).status).toBe(200);
  if (ownerCookie !== undefined) {
    // A cookie carries its expiry, signed.
    behind = shiftOf(fixture);
    const page = await fetch(`${service.url}/owner`, { headers: { cookie: ownerCookie } });
    expect([page.status, await page.text()]).toEqual([200, expect.stringContaining('Second version')]);
    behind = 0;
  }
  const hooked = before.forms.find(({ name: title }) => title === 'Second version');
  const [path, body] = [`/api/forms/${hooked?.id}/submissions`, answersOf(0)];
  const repeated = await service.post(path, body, { headers: { 'idempotency-key': 'answer-0' } });
  expect(before.submissions.map(({ id }) => id)).toContain(repeated.json.submission_id);
  if (placeOf(name) >= placeOf('2026-11-22-idempotency-keys')) {
    const again = await service.post('/api/forms/create', mailedForm, {
      headers: { 'idempotency-key': FORM_KEY },
    });
    // A definition that has got defaults meanwhile is another one. Nothing is made twice.
    if (again.status !== 409) expect(before.forms.map(({ id }) => id)).toContain(again.json.form.id);
  }
  expect(service.logged).toEqual([]);
}

function fixtureOf(name: string): Fixture {
  const fixture = readFixture(name);
  if (fixture === undefined) {
    throw new Error(
      `The migration ${name} has no fixture. Run: npm run fixture (or, with later migrations there already, ` +
        'npm run fixture -- FOLDER, with a working tree whose last migration it is), and commit what it writes.',
    );
  }
  return fixture;
}

/** The statements of a fixture, as if it had been made ten minutes ago: its retries are due, its sessions open. */
function insertsOf(fixture: Fixture, receiver: string): string[] {
  const shift = shiftOf(fixture);
  const shifted = fixture.rows
    .replaceAll(RECEIVER, receiver)
    .replace(/'(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?\+00)'/g, (_, time: string) => {
      return `'${new Date(Date.parse(time) + shift).toISOString()}'`;
    });
  return shifted.split(/;\n\n/).filter((statement) => statement.includes('insert into'));
}

/** How many milliseconds a fixture is moved by, so that it was made ten minutes ago. */
function shiftOf({ madeAt }: Fixture): number {
  return Date.now() - Date.parse(madeAt) - 600_000;
}

/** What is there before the upgrade, in the columns of any version. */
async function rowsOf(database: Database, name: string): Promise<Record<Before, (Row & { id: string })[]>> {
  const hasQueue = placeOf(name) >= placeOf('2026-11-22-delivery-queue');
  const hasCancelled = placeOf(name) >= placeOf('2026-11-22-cancelled-sessions');
  const select = async (sql: string) =>
    (await database.select(sql)).map((row) => ({ ...row, id: String(row.id) }));
  return {
    submissions: await select('select id, form_id, answers, status from submissions'),
    forms: await select('select id, status, name from forms'),
    sessions: await select(
      `select id, prefill, metadata, partial_answers,
         submitted_at is null and expires_at > now() ${hasCancelled ? 'and cancelled_at is null' : ''} as open
       from sessions`,
    ),
    pending: await select(
      `select id, event_id, channel from ${hasQueue ? 'delivery_queue' : "deliveries where status = 'pending'"}`,
    ),
    finished: await select(
      "select id, status, attempt_count from deliveries where channel = 'webhook' and status <> 'pending'",
    ),
  };
}

function idsOf(...rows: { id: string }[][]): string[] {
  return rows.flat().map(({ id }) => id);
}

function arrived(received: Received[], eventId: unknown): boolean {
  return received.some(({ headers }) => headers['webhook-id'] === eventId);
}

/** The columns of each table that an insert has to name. */
async function neededColumns(database: Database): Promise<Map<string, string[]>> {
  const rows = await database.select(
    `select table_name as name, array_agg(column_name::text) as columns from information_schema.columns
     where table_schema = current_schema() and is_nullable = 'NO' and column_default is null group by 1`,
  );
  return new Map(rows.map(({ name, columns }) => [String(name), columns as string[]]));
}

function missingColumns(statement: string, needed: Map<string, string[]>): string[] {
  const inserts = statement.matchAll(/\binsert into "?(\w+)"?(?: as \w+)? \(([^)]+)\)/g);
  return [...inserts].flatMap(([, table = '', columns = '']) => {
    const named = columns.split(',').map((column) => column.trim().replaceAll('"', ''));
    const missing = needed.get(table)?.filter((column) => !named.includes(column)) ?? [];
    return missing.map((column) => `${table}.${column}`);
  });
}

type Before = 'submissions' | 'forms' | 'sessions' | 'pending' | 'finished';
