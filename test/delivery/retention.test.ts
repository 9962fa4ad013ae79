import { describe, expect, it } from 'vitest';
import { removeFiles, removeOld } from '../../src/delivery/sweeps/sweeps.ts';
import { newId, newSessionId } from '../../src/domain/ids.ts';
import type { Database, Queries } from '../../src/store/database/database.ts';
import { insertSession } from '../../src/store/sessions/sessions.ts';
import { createSubmissionWriter, type NewSubmission } from '../../src/store/submissions/submission-writer.ts';
import { insertUpload } from '../../src/store/uploads.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { engines, openTestDatabase } from '../support/database.ts';
import {
  deliveredByWebhook,
  expectFinished,
  givenForm,
  givenWebhook,
  plainDefinition,
  startDelivery,
} from '../support/delivery.ts';
import { startReceiver } from '../support/receiver.ts';
import { until } from '../support/until.ts';

const DAY_MS = 24 * 60 * 60 * 1000;

const noMetrics = createMetrics({ version: '0', database: 'pglite' });

describe.each(engines)('retention on %s', (engine) => {
  it("removes a form's submissions after its retentionDays with all that holds their answers", async () => {
    await using database = await openTestDatabase(engine);
    const form = await givenForm(database);
    const keeping = await givenForm(database);
    const removed: string[] = [];
    await using delivery = startDelivery(database, {
      removeUpload: async (id) => void removed.push(id),
    });
    const old = await givenSubmission(database, form, 31);
    const recent = await givenSubmission(database, form, 29);
    const kept = await givenSubmission(database, keeping, 400);
    const upload = await givenUpload(database, form.id, old);
    await expectFinished(database, form, 2);
    await expectFinished(database, keeping, 1);
    await delivery.stop(1_000);
    await database.execute('update forms set retention_days = 30 where id = $1', [form.id]);

    await removeOld(delivery.options);
    await removeFiles(delivery.options);

    expect(await idsOf(database, 'select id from submissions')).toEqual([recent, kept].sort());
    expect(await idsOf(database, 'select submission_id as id from events')).toEqual([recent, kept].sort());
    expect(
      await idsOf(database, 'select submission_id as id from deliveries join events on events.id = event_id'),
    ).toEqual([recent, kept].sort());
    expect(
      await idsOf(database, 'select id from attempts where delivery_id not in (select id from deliveries)'),
    ).toEqual([]);
    expect(removed).toEqual([upload]);
  });

  it('removes them when the time has come, and tells webhooks that registered it, by ids alone', async () => {
    await using database = await openTestDatabase(engine);
    await using receiver = await startReceiver();
    const form = await givenForm(database, { ...deliveredByWebhook, retentionDays: 30 });
    await givenWebhook(database, form, { url: receiver.url, events: ['submission.deleted'] });
    await givenWebhook(database, form, { url: 'http://127.0.0.1:1/', events: ['submission.created'] });
    await using delivery = startDelivery(database, { settings: { schedule: [0] } });
    const id = await givenSubmission(database, form, 29);
    await expectFinished(database, form, 1);

    await removeOld(delivery.options);
    const before = await idsOf(database, 'select id from submissions');
    await database.execute('update forms set retention_days = 28 where id = $1', [form.id]);
    await removeOld(delivery.options);

    expect(before).toEqual([id]);
    expect(await idsOf(database, 'select id from submissions')).toEqual([]);
    delivery.notify();
    const [hit] = await receiver.expectRequests(1);
    const body = JSON.parse(hit?.body ?? '{}');
    expect(body).toEqual({
      id: expect.stringMatching(/^evt_/),
      event: 'submission.deleted',
      createdAt: expect.any(String),
      data: { submissionId: id, formId: form.id, sessionId: null },
    });
    expect(receiver.received).toHaveLength(1);
    expect(await idsOf(database, `select id from events where body like '%ada@example.com%'`)).toEqual([]);
  });

  it('takes as many statements however many forms there are of which nothing is too old', async () => {
    await using database = await openTestDatabase(engine);
    const form = await givenForm(database, { retentionDays: 30 });
    const kept = await givenSubmission(database, form, 29);
    await using delivery = startDelivery(database);
    await delivery.stop(1_000);
    const { counted, count } = countStatements(database);
    await removeOld({ ...delivery.options, database: counted });
    const ofOne = count();

    await givenMoreForms(database, form, 1_000);
    await removeOld({ ...delivery.options, database: counted });

    expect(count() - ofOne).toBe(ofOne);
    expect(await idsOf(database, 'select id from submissions')).toEqual([kept]);
  });

  it('removes what is too old of many forms, spam too, and no more, by an index', async () => {
    await using database = await openTestDatabase(engine);
    const form = await givenForm(database, { retentionDays: 30 });
    await givenMoreForms(database, form, 1_000);
    await using delivery = startDelivery(database);
    await delivery.stop(1_000);
    const [young, old] = [
      newId('sub', Date.now() - 30 * DAY_MS + 60_000),
      newId('sub', Date.now() - 30 * DAY_MS - 60_000),
    ].map((id) => id.slice(0, 14));
    await database.execute(
      `insert into submissions (id, project_id, form_id, version_id, source, answers, metadata, status, created_at)
       select start || lpad(n::text, 16, '0'), f.project_id, f.id, 'ver', 'api', '{}', '{}',
         case when n % 2 = 0 then 'spam' else 'accepted' end, now()
       from (select *, row_number() over (order by id) as n from forms) f, unnest($1::text[]) as start where n <= 350`,
      [[young, old]],
    );
    await database.execute('analyze submissions');
    const lags: number[] = [];
    const metrics = { ...noMetrics, onRetention: (seconds: number) => void lags.push(seconds) };
    const plans: string[] = [];
    const explaining = explainingDatabase(database, plans);

    await removeOld({ ...delivery.options, database: explaining, metrics });

    const left = await idsOf(database, 'select id from submissions');
    expect(left).toHaveLength(350);
    expect(left.every((id) => id.startsWith(young ?? ''))).toBe(true);
    expect(lags.slice(0, 4).every((seconds) => seconds >= 60 && seconds < 600)).toBe(true);
    const removals = await database.select(
      `select count(*)::int as entries, sum(count)::int as removed from audit_entries where action = 'submission.removed'`,
    );
    expect(removals).toEqual([{ entries: 350, removed: 350 }]);
    expect(plans.length).toBeGreaterThan(0);
    for (const plan of plans) {
      expect(plan).toContain('"Index Name":"submissions_by_form"');
      expect(plan).not.toMatch(
        /"Seq Scan","Parallel Aware":\w+,"Async Capable":\w+,"Relation Name":"submissions"/,
      );
    }
  });

  it('leaves what tells of deleted submissions when their form goes', async () => {
    await using database = await openTestDatabase(engine);
    await using receiver = await startReceiver();
    const form = await givenForm(database, deliveredByWebhook);
    await givenWebhook(database, form, { url: receiver.url, events: ['submission.deleted'] });
    const id = await givenSubmission(database, form, 0);
    await database.execute(
      "update forms set status = 'archived', deleted_at = now() - interval '2 minutes' where id = $1",
      [form.id],
    );
    await using delivery = startDelivery(database);

    await until(async () => (await idsOf(database, 'select id from forms')).length === 0);

    const [hit] = await receiver.expectRequests(1);
    expect(JSON.parse(hit?.body ?? '{}').data).toEqual({
      submissionId: id,
      formId: form.id,
      sessionId: null,
    });
    await delivery.stop(1_000);
    expect(await idsOf(database, 'select id from submissions')).toEqual([]);
  });

  it('removes sessions that ended before the retentionDays, and no open one', async () => {
    await using database = await openTestDatabase(engine);
    const settings = { ...plainDefinition.settings, retentionDays: 1 };
    const form = await givenForm(database, { definition: { settings } });
    await using delivery = startDelivery(database);
    await delivery.stop(1_000);
    const [ended, open] = [await givenSession(database, form), await givenSession(database, form)];
    await database.execute(
      `update sessions set expires_at = now() - interval '25 hours', expiry_announced_at = now() where id = $1`,
      [ended],
    );

    await removeOld(delivery.options);

    expect(await idsOf(database, 'select id from sessions')).toEqual([open]);
  });

  it('removes drafts that were made without a key and not activated in time', async () => {
    await using database = await openTestDatabase(engine);
    const late = new Date(Date.now() - 1_000);
    const soon = new Date(Date.now() + 60_000);
    const draft = {
      status: 'draft',
      createdBy: 'public',
      currentVersionId: null,
      activatedAt: null,
    } as const;
    await givenForm(database, { ...draft, activationExpiresAt: late });
    const kept = [
      await givenForm(database, { ...draft, activationExpiresAt: soon }),
      await givenForm(database, { ...draft, activationExpiresAt: late, createdBy: 'key_1' }),
      await givenForm(database, { activationExpiresAt: late, createdBy: 'public' }),
    ];
    await using delivery = startDelivery(database);
    await delivery.stop(1_000);

    await removeOld(delivery.options);

    expect(await idsOf(database, 'select id from forms')).toEqual(kept.map(({ id }) => id).sort());
  });

  it('removes uploads that no submission claimed within an hour, their bytes too', async () => {
    await using database = await openTestDatabase(engine);
    const form = await givenForm(database);
    const removed: string[] = [];
    await using delivery = startDelivery(database, {
      removeUpload: async (id) => void removed.push(id),
    });
    await delivery.stop(1_000);
    const orphan = await givenUpload(database, form.id, null);
    const claimed = await givenUpload(database, form.id, 'sub_1');
    await database.execute(`update uploads set created_at = now() - interval '61 minutes'`);
    const fresh = await givenUpload(database, form.id, null);

    await removeOld(delivery.options);
    await removeFiles(delivery.options);

    expect(removed).toEqual([orphan]);
    expect(await idsOf(database, 'select id from uploads')).toEqual([claimed, fresh].sort());
  });
});

/** Counts the statements of a database, those of transactions too. */
function countStatements(database: Database) {
  let statements = 0;
  const counting = <Q extends Queries>(queries: Q): Q => ({
    ...queries,
    select: (...call: Parameters<Queries['select']>) => {
      statements += 1;
      return queries.select(...call);
    },
    execute: (...call: Parameters<Queries['execute']>) => {
      statements += 1;
      return queries.execute(...call);
    },
    read: (work: Parameters<Queries['read']>[0]) => {
      statements += 1;
      return queries.read(work);
    },
  });
  const counted: Database = {
    ...counting(database),
    transaction: (work) => database.transaction((tx) => work(counting(tx))),
  };
  return { counted, count: () => statements };
}

/** Keeps the plans of the statement that looks for what is too old. */
function explainingDatabase(database: Database, plans: string[]): Database {
  return {
    ...database,
    select: async (sql, params) => {
      if (sql.includes('with bounds')) {
        plans.push(JSON.stringify(await database.select(`explain (format json) ${sql}`, params)));
      }
      return database.select(sql, params);
    },
  };
}

async function givenMoreForms(database: Database, form: { id: string }, count: number): Promise<void> {
  await database.execute(
    `insert into forms select (jsonb_populate_record(f, jsonb_build_object('id', f.id || n))).*
     from forms f, generate_series(1, ${count}) n where f.id = $1`,
    [form.id],
  );
  await database.execute('analyze forms');
}

/** A submission of so many days ago, with its event. */
async function givenSubmission(
  database: Database,
  form: { id: string; projectId: string; versionId: string },
  daysAgo: number,
): Promise<string> {
  const createdAt = new Date(Date.now() - daysAgo * DAY_MS);
  const id = newId('sub', createdAt.getTime());
  const answers = { name: 'Ada', email: 'ada@example.com' };
  const data = {
    submissionId: id,
    formVersionId: form.versionId,
    createdAt: createdAt.toISOString(),
  };
  const body = { start: `{"data":${JSON.stringify(data).slice(0, -1)},"answers":`, end: '}}' };
  const submission: NewSubmission = {
    id,
    projectId: form.projectId,
    formId: form.id,
    versionId: form.versionId,
    sessionId: null,
    source: 'api',
    answers,
    provenance: [{ by: 'api' }],
    metadata: {},
    status: 'accepted',
    idempotencyKey: null,
    requestFingerprint: null,
    respondent: null,
    respondentKey: null,
    replaces: null,
    replacedBy: null,
    createdAt,
    event: { id: newId('evt', Date.now()), type: 'submission.created', body },
  };
  const writer = createSubmissionWriter(database);
  await writer.write(submission);
  await writer.close();
  return id;
}

async function givenUpload(database: Database, formId: string, submissionId: string | null) {
  const id = newId('upl', Date.now());
  await insertUpload(database, {
    id,
    projectId: 'prj_one',
    formId,
    fieldId: 'file',
    filename: 'a.txt',
    contentType: 'text/plain',
    size: 1,
    sha256: '00',
    keyless: false,
    createdAt: new Date(),
    submissionId,
  });
  return id;
}

async function givenSession(
  database: Database,
  form: { id: string; projectId: string; versionId: string },
): Promise<string> {
  const { id } = await insertSession(database, {
    id: newSessionId(),
    projectId: form.projectId,
    formId: form.id,
    versionId: form.versionId,
    prefill: {},
    metadata: {},
    expiresIn: 3600,
  });
  return id;
}

async function idsOf(database: Database, sql: string): Promise<string[]> {
  const rows = await database.select(sql);
  return rows.map(({ id }) => String(id)).sort();
}
