import { openAsBlob } from 'node:fs';
import { Migration } from '@mikro-orm/migrations';
import { pino } from 'pino';
import { afterAll, describe, expect, it } from 'vitest';
import type { Engine } from '../../../src/store/database/engine.ts';
import { openPglite } from '../../../src/store/database/pglite.ts';
import { openPostgres } from '../../../src/store/database/postgres.ts';
import { migrations } from '../../../src/store/migrations/index.ts';
import { createServerDatabase, type EngineName, engines } from '../../support/database.ts';
import { makeEarlierTables } from '../../support/earlier-tables.ts';
import { runOn } from '../../support/postgres.ts';
import { preparedPglite } from '../../support/prepared.ts';

let embedded: Promise<Engine> | undefined;
afterAll(async () => (await embedded)?.close());

it.each(engines)('puts the retention time of current versions on older forms on %s', async (name) => {
  await using cleanup = new AsyncDisposableStack();
  const engine = await openEngine(name, cleanup);
  await makeEarlierTables(runOnEngine(engine), migrations.at(-1)?.name);
  await engine.query('alter table forms drop column retention_days', []);
  await engine.query("delete from migrations where name = '2026-11-21-forms-with-retention'", []);
  await engine.query(
    `insert into form_versions (id, form_id, number, definition, checksum, created_at) values
       ('ver_1', 'form_1', 1, '{"settings":{"retentionDays":30}}', '1', now()),
       ('ver_2', 'form_2', 1, '{"settings":{"retentionDays":60}}', '1', now()),
       ('ver_3', 'form_2', 2, '{"settings":{}}', '2', now())`,
    [],
  );
  await engine.query(
    `insert into forms (id, project_id, name, slug, status, created_by, current_version_id, activation_hash,
       activation_expires_at, created_at, updated_at)
     select id, 'prj_1', id, id, 'published', 'key_1', version, 'hash', now(), now(), now()
     from (values ('form_1', 'ver_1'), ('form_2', 'ver_3'), ('form_3', null)) as f(id, version)`,
    [],
  );

  await engine.migrate();

  expect(await engine.query('select id, retention_days from forms order by id', [])).toEqual([
    { id: 'form_1', retention_days: 30 },
    { id: 'form_2', retention_days: null },
    { id: 'form_3', retention_days: null },
  ]);
  expect(await engine.schemaDifference()).toBe('');
});

it.each(engines)(
  'numbers the fields of existing forms in the order of their versions on %s',
  async (name) => {
    await using cleanup = new AsyncDisposableStack();
    const engine = await openEngine(name, cleanup);
    await makeEarlierTables(runOnEngine(engine), '2026-11-24-mailed-links');
    const fieldsOf = (...ids: string[]) =>
      ids.map((id) => ({ id, type: id === 'intro' ? 'statement' : 'text' }));
    const publish = (formId: string, number: number, fields: object[]) =>
      engine.query(
        `insert into form_versions (id, form_id, number, definition, checksum, created_at)
       values ($1, $2, $3, $4, $1, now())`,
        [`ver_${formId}_${number}`, formId, number, JSON.stringify({ name: "Ada's", fields })],
      );
    // More versions than are read at once, the last of which go over from one group to the next.
    for (let number = 1; number <= 101; number += 1) {
      await publish('form_1', number, fieldsOf('intro', 'a', number % 2 === 0 ? 'c' : 'b'));
    }
    await publish('form_2', 1, fieldsOf('x'));

    await engine.migrate();

    const contracts = await engine.query(
      `select contract from form_versions where form_id = 'form_2' or number in (1, 2, 101) order by form_id, number`,
      [],
    );
    const common = { package: 'headlessforms.generated.form_1', message: 'AdasAnswers' };
    const a = { number: 1, name: 'a' };
    expect(contracts.map(({ contract }) => contract)).toEqual([
      { ...common, nextNumber: 3, fields: { a, b: { number: 2, name: 'b' } } },
      { ...common, nextNumber: 4, fields: { a, c: { number: 3, name: 'c' } } },
      { ...common, nextNumber: 103, fields: { a, b: { number: 102, name: 'b' } } },
      {
        ...common,
        package: 'headlessforms.generated.form_2',
        nextNumber: 2,
        fields: { x: { number: 1, name: 'x' } },
      },
    ]);
    expect(await engine.schemaDifference()).toBe('');
  },
);

it.each(engines)('takes deliveries of every state into the queue and the log on %s', async (name) => {
  await using cleanup = new AsyncDisposableStack();
  const engine = await openEngine(name, cleanup);
  await makeEarlierTables(runOnEngine(engine), '2026-11-22-mail-allowances');
  await engine.query(
    `insert into webhooks (id, project_id, form_id, url, events, secret, keyless, from_definition, active, created_at)
     values ('wh_1', 'prj_1', null, 'https://one.example/', '{submission.created}', 's', false, false, true, now()),
       ('wh_2', 'prj_1', 'form_2', 'https://two.example/', '{submission.created}', 's', true, true, true, now()),
       ('wh_3', 'prj_1', 'form_2', 'https://off.example/', '{submission.created}', 's', true, false, false, now())`,
    [],
  );
  await engine.query(
    `insert into deliveries (id, project_id, form_id, event_id, webhook_id, submission_id, channel, kind, receiver,
       url, mail, status, attempt_count, step, due_at, leased_until, created_at, last_attempt_at, delivered_at,
       response_status, error)
     select id, 'prj_1', form, 'evt_' || id, webhook, 'sub_' || id, channel, kind, receiver, url, mail::json, status,
       tries, tries, due::timestamptz, null, '2026-11-20T10:00:00Z', case when tries > 0 then now() end,
       case status when 'delivered' then now() end, answer, error
     from (values
       ('dlv_1', 'form_1', 'wh_1', 'webhook', 'submission.created', 'wh_1', 'https://one.example/', null, 'pending', 2,
         '2026-11-20T12:00:00Z', 500, 'Answered 500.'),
       ('dlv_2', 'form_2', 'wh_2', 'webhook', 'submission.created', 'wh_2', 'https://two.example/', null, 'pending', 0,
         '2026-11-20T10:00:00Z', null, null),
       ('dlv_3', 'form_1', null, 'mail', 'owner', 'a@example.com', null, '{"to":"a@example.com"}', 'pending', 0,
         '2026-11-21T00:00:00Z', null, 'Waits: the owner has not confirmed the address.'),
       ('dlv_4', 'form_1', 'wh_1', 'webhook', 'submission.created', 'wh_1', 'https://one.example/', null, 'failed', 1,
         null, 410, 'Answered 410 Gone.'),
       ('dlv_5', 'form_1', 'wh_1', 'webhook', 'submission.created', 'wh_1', 'https://one.example/', null, 'delivered', 1,
         null, 204, null)
     ) as d(id, form, webhook, channel, kind, receiver, url, mail, status, tries, due, answer, error)`,
    [],
  );
  await engine.query(
    `insert into attempts (id, delivery_id, number, status, response_status, error, response_body, duration_ms, started_at)
     values ('att_1', 'dlv_5', 1, 'delivered', 204, null, 'thanks', 7, now())`,
    [],
  );
  await engine.query(
    `insert into events (id, project_id, form_id, type, submission_id, body, created_at, fanned_out_at)
     select 'evt_dlv_' || n, 'prj_1', 'form_1', 'submission.created', 'sub_dlv_' || n, '{}', now(), now()
     from generate_series(1, 5) n
     union all select 'evt_0123456789waiting000000000', 'prj_1', 'form_2', 'submission.completed', 'sub_6', '{}', now(), null
     union all select 'evt_0123456789foreign000000000', 'prj_2', 'form_3', 'submission.created', 'sub_7', '{}', now(), null`,
    [],
  );

  await engine.migrate();

  expect(await engine.schemaDifference()).toBe('');
  const queued = await engine.query(
    `select id, share, channel, receiver, url, mail, step, attempt_count, error,
       due_at < '2026-11-21T12:00:00Z' as kept_its_time
     from delivery_queue where event_id not like '%waiting%' order by id`,
    [],
  );
  expect(queued).toEqual([
    {
      id: 'dlv_1',
      share: 'prj_1',
      channel: 'webhook',
      receiver: 'wh_1',
      url: 'https://one.example/',
      mail: null,
      step: 2,
      attempt_count: 2,
      error: 'Answered 500.',
      kept_its_time: true,
    },
    expect.objectContaining({ id: 'dlv_2', share: 'prj_1 keyless', step: 0, kept_its_time: true }),
    expect.objectContaining({
      id: 'dlv_3',
      channel: 'mail',
      mail: { to: 'a@example.com' },
      kept_its_time: true,
    }),
  ]);
  const made = await engine.query(
    `select id, webhook_id, share from delivery_queue where event_id like '%waiting%' order by webhook_id`,
    [],
  );
  expect(made).toEqual([
    { id: expect.stringMatching(/^dlv_0123456789[0-9a-f]{16}$/), webhook_id: 'wh_1', share: 'prj_1' },
    { id: expect.stringMatching(/^dlv_0123456789[0-9a-f]{16}$/), webhook_id: 'wh_2', share: 'prj_1 keyless' },
  ]);
  expect(
    await engine.query('select id, status, attempt_count, error from deliveries order by id', []),
  ).toEqual([
    { id: 'dlv_4', status: 'failed', attempt_count: 1, error: 'Answered 410 Gone.' },
    { id: 'dlv_5', status: 'delivered', attempt_count: 1, error: null },
  ]);
  const waiting = await engine.query('select count(*)::int as n from events where fanned_out_at is null', []);
  expect(waiting).toEqual([{ n: 2 }]);
});

it.each(engines)(
  'queues what a version without the queue stored while the queue was made, on %s',
  async (name) => {
    await using cleanup = new AsyncDisposableStack();
    const engine = await openEngine(name, cleanup);
    await makeEarlierTables(runOnEngine(engine), '2026-11-22-delivery-queue');
    await engine.query(
      `insert into webhooks (id, project_id, form_id, url, events, secret, keyless, from_definition, active, created_at)
     values ('wh_1', 'prj_1', null, 'https://one.example/', '{submission.created}', 's', false, false, true, now())`,
      [],
    );
    await engine.query(
      `insert into events (id, project_id, form_id, type, submission_id, body, created_at, fanned_out_at)
     select id, 'prj_1', 'form_1', type, submission, '{}', now(), fanned_out_at::timestamptz
     from (values
       ('evt_0000000001waiting', 'submission.created', 'sub_1', null),
       ('evt_0000000002fanned-out', 'submission.completed', 'sub_2', '2026-11-22T10:00:00Z'),
       ('evt_0000000003queued', 'submission.created', 'sub_3', null),
       ('evt_0000000004unheard', 'session.expired', null, '2026-11-22T10:00:00Z')
     ) e(id, type, submission, fanned_out_at)`,
      [],
    );
    await engine.query(
      `insert into delivery_queue (id, project_id, form_id, event_id, webhook_id, share, channel, kind, receiver, due_at,
       created_at, queued_at)
     values ('dlv_1', 'prj_1', 'form_1', 'evt_0000000003queued', 'wh_1', 'prj_1', 'webhook', 'submission.created', 'wh_1',
       now(), now(), now())`,
      [],
    );

    await engine.migrate();

    expect(
      await engine.query('select event_id, webhook_id, url from delivery_queue order by event_id', []),
    ).toEqual([
      { event_id: 'evt_0000000001waiting', webhook_id: 'wh_1', url: 'https://one.example/' },
      { event_id: 'evt_0000000002fanned-out', webhook_id: 'wh_1', url: 'https://one.example/' },
      { event_id: 'evt_0000000003queued', webhook_id: 'wh_1', url: null },
    ]);
    expect(await engine.query('select id from events where fanned_out_at is null order by id', [])).toEqual([
      { id: 'evt_0000000001waiting' },
      { id: 'evt_0000000002fanned-out' },
      { id: 'evt_0000000003queued' },
    ]);
  },
);

describe.concurrent('a migration that takes long', () => {
  it('outlasts the time limits of statements, also those that the database sets, and says so in the log', async () => {
    await using server = await createServerDatabase();
    const name = new URL(server.databaseUrl).pathname.slice(1);
    await runOn(server.adminUrl, `alter database ${name} set statement_timeout = 300`);
    await using cleanup = new AsyncDisposableStack();
    const { log, lines } = collectLog();
    const engine = await openPostgres({
      databaseUrl: server.databaseUrl,
      poolSize: 1,
      log,
      limits: { statementMs: 500, answerMs: 1_500 },
      migrations: [...migrations, { name: 'slow', class: Slow }],
    });
    cleanup.defer(() => engine.close());

    const begun = performance.now();
    await engine.migrate();
    const tookSeconds = (performance.now() - begun) / 1_000;

    expect(lines).toEqual([
      { level: 30, migration: 'slow', seconds: expect.any(Number), msg: 'Still migrating the database.' },
      { level: 30, migration: 'slow', seconds: expect.any(Number), msg: 'Migrated the database.' },
    ]);
    expectSeconds(lines, tookSeconds);
    expect(await engine.query("select name from migrations where name = 'slow'", [])).toHaveLength(1);
    await expect(engine.query('select pg_sleep(2)', [])).rejects.toMatchObject({ code: '57014' });
  });

  it('is waited for by another process, however long it takes', async () => {
    await using server = await createServerDatabase();
    const { log, lines } = collectLog();
    await using cleanup = new AsyncDisposableStack();
    const [one, two] = await Promise.all(
      [1, 2].map(async () => {
        const engine = await openPostgres({
          databaseUrl: server.databaseUrl,
          poolSize: 1,
          log,
          limits: { statementMs: 500, answerMs: 1_500 },
          migrations: [...migrations, { name: 'slow', class: Slow }],
        });
        cleanup.defer(() => engine.close());
        return engine;
      }),
    );

    const begun = performance.now();
    await Promise.all([one?.migrate(), two?.migrate()]);
    const tookSeconds = (performance.now() - begun) / 1_000;

    expect(lines).toContainEqual({
      level: 30,
      seconds: expect.any(Number),
      msg: 'Waiting for another process that is migrating the database.',
    });
    expectSeconds(lines, tookSeconds);
    expect(await two?.query("select name from migrations where name = 'slow'", [])).toHaveLength(1);
  });

  it('is not spoken of if it takes no time', async () => {
    await using server = await createServerDatabase({ migrated: false });
    await using cleanup = new AsyncDisposableStack();
    const { log, lines } = collectLog();
    const engine = await openPostgres({
      databaseUrl: server.databaseUrl,
      poolSize: 1,
      log,
      migrations: [{ name: 'nothing', class: Nothing }],
    });
    cleanup.defer(() => engine.close());

    await engine.migrate();

    expect(lines).toEqual([]);
  });
});

it.each(engines)('leaves it open where older answers come from on %s', async (name) => {
  await using cleanup = new AsyncDisposableStack();
  const engine = await openEngine(name, cleanup);
  await makeEarlierTables(runOnEngine(engine), '2026-11-22-idempotency-keys');
  await engine.query(
    `insert into submissions (id, project_id, form_id, version_id, source, answers, metadata, status, created_at)
     values ('sub_1', 'prj_1', 'form_1', 'ver_1', 'api', '{"a":"x"}', '{}', 'accepted', now())`,
    [],
  );
  await engine.query(
    `insert into sessions (id, project_id, form_id, version_id, prefill, metadata, created_at, expires_at)
     values ('sess_1', 'prj_1', 'form_1', 'ver_1', '{"a":"x"}', '{}', now(), now())`,
    [],
  );

  await engine.migrate();

  expect(await engine.schemaDifference()).toBe('');
  expect(await engine.query('select answers, provenance from submissions', [])).toEqual([
    { answers: { a: 'x' }, provenance: null },
  ]);
  expect(await engine.query('select prefill, provenance from sessions', [])).toEqual([
    { prefill: { a: 'x' }, provenance: null },
  ]);
});

/** That the lines that tell how long something took, or takes, in whole seconds, tell less than all that it took. */
function expectSeconds(lines: { seconds?: number }[], tookSeconds: number): void {
  const told = lines.flatMap(({ seconds = [] }) => seconds);
  expect(Math.min(...told)).toBeGreaterThanOrEqual(1);
  expect(Math.max(...told)).toBeLessThanOrEqual(Math.round(tookSeconds));
}

function runOnEngine(engine: Engine) {
  return (sql: string, params: unknown[] = []) => engine.query(sql, params);
}

class Slow extends Migration {
  override up(): void {
    this.addSql('select pg_sleep(2)');
  }
}

class Nothing extends Migration {
  override up(): void {
    this.addSql('select 1');
  }
}

/** A log, and what it was told. */
function collectLog() {
  const lines: { seconds?: number }[] = [];
  const write = (line: string) => lines.push(JSON.parse(line));
  return { log: pino({ base: null, timestamp: false }, { write }), lines };
}

/** With tables of any version: those who open it make their own. The embedded one is the same for all of them. */
async function openEngine(name: EngineName, cleanup: AsyncDisposableStack): Promise<Engine> {
  if (name === 'pglite') {
    embedded ??= preparedPglite().then(async ({ dump }) =>
      openPglite({ dump: await openAsBlob(dump), log: console }),
    );
    return embedded;
  }
  const { databaseUrl } = cleanup.use(await createServerDatabase());
  const engine = await openPostgres({ databaseUrl, poolSize: 2, log: console });
  return cleanup.adopt(engine, () => engine.close());
}
