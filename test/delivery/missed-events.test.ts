import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { describe, expect, it } from 'vitest';
import { ReplayStatus, WebhooksService } from '../../gen/headlessforms/v1/webhooks_pb.js';
import { replay } from '../../src/cli/deliveries.ts';
import { newId } from '../../src/domain/ids.ts';
import { engines } from '../support/database.ts';
import { failureOf } from '../support/failures.ts';
import { type Received, startReceiver } from '../support/receiver.ts';
import { type CallOptions, startService, type TestService } from '../support/server.ts';
import { until } from '../support/until.ts';

const nobody = 'http://127.0.0.1:1/';
const withoutWorkers = { DELIVERY_WORKERS: '0' };
const long = '2026-01-01';

describe.each(engines)('events that a webhook missed, on %s,', (engine) => {
  it('are sent once it is on again, with the ids and bodies that others got', async () => {
    await using receiver = await startReceiver();
    await using other = await startReceiver();
    await using service = await startService({ engine });
    const { id: formId } = await service.givenPublishedForm();
    const webhook = await givenWebhook(service, { url: receiver.url });
    await givenWebhook(service, { url: other.url, form_id: formId });
    await submit(service, formId);
    await receiver.expectRequests(1);

    await turn(service, webhook, false);
    await submit(service, formId);
    await submit(service, formId);
    await other.expectRequests(3);
    const whileOff = await replayMissed(service, webhook);
    await turn(service, webhook, true);
    await submit(service, formId);
    await receiver.expectRequests(2);
    const replayed = await replayMissed(service, webhook);
    await receiver.expectRequests(4);
    const again = await replayMissed(service, webhook);

    expect([whileOff.status, whileOff.json.error]).toMatchObject([
      409,
      { reason: 'conflict', message: 'The webhook is off: turn it on first' },
    ]);
    expect(replayed.status).toBe(202);
    expect(replayed.json).toEqual({ ok: true, count: 2, more: false, next_created_after: null });
    expect(again.json.count).toBe(0);
    const sent = (hits: Received[]) =>
      new Map(hits.map(({ headers, body }) => [headers['webhook-id'], body] as const));
    expect(sent(receiver.received)).toEqual(sent(await other.expectRequests(4)));
    await until(async () => (await logOf(service, webhook)).every(({ status }) => status === 'delivered'));
    expect((await logOf(service, webhook)).map((each) => each.attempt_count)).toEqual([1, 1, 1, 1]);
  });

  it('are those since it was made, of its form or project, of its types, that pass its filter', async () => {
    let now = Date.now() - 60_000;
    await using service = await startService({ engine, env: withoutWorkers, now: () => now });
    const elsewhere = { key: await service.givenKey(['*'], 'elsewhere') };
    const form = await service.givenPublishedForm();
    const other = await service.givenPublishedForm();
    const foreign = await service.givenPublishedForm({}, elsewhere);
    const strangers = await service.givenPublishedForm({}, { key: null });
    await submit(service, form.id);
    now += 1_000;
    const [ofForm, ofProject, filtered] = await Promise.all([
      givenWebhook(service, { form_id: form.id }),
      givenWebhook(service, { events: ['submission.created', 'session.cancelled', 'session.notified'] }),
      givenWebhook(service, { filter: { field_id: 'message', value: 'sales' } }),
    ]);
    const webhooks = [ofForm, ofProject, filtered];
    const channel = await givenWebhook(service, { events: ['session.notified'] });
    for (const webhook of webhooks) await turn(service, webhook, false);
    const own = await submit(service, form.id, { message: 'sales' });
    const ofOther = await submit(service, other.id, { message: 'support' });
    await submit(service, foreign.id, {}, elsewhere);
    const ofStranger = await submit(service, strangers.id);
    const session = await service.post('/v1/sessions', {
      form_id: other.id,
      notify: { webhook_id: channel },
    });
    await service.post(`/v1/sessions/${session.json.session.id}/cancel`);
    // As a person's on the page.
    await service.database.execute(
      `update events set type = 'submission.completed' where submission_id = $1`,
      [own],
    );

    for (const webhook of webhooks) await turn(service, webhook, true);
    const counts = await Promise.all(webhooks.map((webhook) => replayMissed(service, webhook)));

    expect(counts.map(({ json }) => json.count)).toEqual([1, 4, 1]);
    const queued = await service.database.select(
      `select q.webhook_id, q.share like '% keyless' as keyless, coalesce(e.submission_id, e.session_id) as about, q.kind
       from delivery_queue q join events e on e.id = q.event_id where q.webhook_id = any($1)`,
      [webhooks],
    );
    const of = (webhook_id: string, about: string, kind = 'submission.created', keyless = false) => ({
      webhook_id,
      about,
      kind,
      keyless,
    });
    expect(queued).toHaveLength(6);
    expect(queued).toEqual(
      expect.arrayContaining([
        of(ofForm, own, 'submission.completed'),
        of(ofProject, own, 'submission.completed'),
        of(ofProject, ofOther),
        of(ofProject, ofStranger, 'submission.created', true),
        of(ofProject, session.json.session.id, 'session.cancelled'),
        of(filtered, own, 'submission.completed'),
      ]),
    );
  });

  it('are not sent of submissions and forms that were deleted, but that they were', async () => {
    await using service = await startService({ engine, env: withoutWorkers });
    const form = await service.givenPublishedForm();
    const gone = await service.givenPublishedForm();
    const webhook = await givenWebhook(service, { events: ['submission.created', 'session.cancelled'] });
    const deletions = await givenWebhook(service, { events: ['submission.deleted'] });
    await givenWebhook(service, { events: ['submission.deleted'] });
    await turn(service, webhook, false);
    await turn(service, deletions, false);
    const deleted = await submit(service, form.id);
    await submit(service, gone.id);
    const session = await service.post('/v1/sessions', { form_id: gone.id });
    await service.post(`/v1/sessions/${session.json.session.id}/cancel`);

    await service.delete(`/v1/submissions/${deleted}`);
    await service.post(`/v1/forms/${gone.id}/archive`);
    const { status } = await service.delete(`/v1/forms/${gone.id}`);
    await turn(service, webhook, true);
    await turn(service, deletions, true);

    expect(status).toBe(200);
    expect((await replayMissed(service, webhook)).json.count).toBe(0);
    expect((await replayMissed(service, deletions)).json.count).toBeGreaterThan(0);
    const [row] = await service.database.select(
      `select e.body from delivery_queue q join events e on e.id = q.event_id where q.webhook_id = $1
       order by e.id limit 1`,
      [deletions],
    );
    expect(JSON.parse(String(row?.body)).data.submissionId).toBe(deleted);
  });

  it('are sent 10,000 a call, oldest first, once over calls at once, and by the command line all', async () => {
    await using service = await startService({ engine, env: withoutWorkers });
    const { id: formId } = await service.givenPublishedForm();
    const webhook = await givenWebhook(service);
    await givenEvents(service, formId, 20_050);

    const first = await replayMissed(service, webhook);
    const [last] = await service.database.select(
      'select created_at from events order by id offset 9999 limit 1',
    );
    const atOnce = await Promise.all(
      [1, 2].map(() => replayMissed(service, webhook, first.json.next_created_after)),
    );
    const lines: string[] = [];
    const options = { transport: service.transport(), key: service.key };
    await replay({ ...options, ids: [webhook], missedSince: long, print: (line) => void lines.push(line) });

    expect(first.json).toMatchObject({ ok: true, count: 10_000, more: true });
    expect(first.json.next_created_after).toBe(new Date(String(last?.created_at)).toISOString());
    expect(atOnce.reduce((sum, { json }) => sum + json.count, 0)).toBeGreaterThanOrEqual(10_000);
    const [row] = await service.database.select(
      'select count(*)::int as count, count(distinct event_id)::int as events from delivery_queue',
    );
    expect(row).toEqual({ count: 20_050, events: 20_050 });
    expect(lines).toEqual([expect.stringMatching(`^${webhook}: \\d+ pending$`)]);
  });

  it('are looked for among 100,000 events a call', async () => {
    await using service = await startService({ engine, env: withoutWorkers });
    const { id: formId } = await service.givenPublishedForm();
    const webhook = await givenWebhook(service, { form_id: formId });
    await service.database.execute(
      `insert into events (id, project_id, form_id, type, body, created_at, fanned_out_at)
       select g.id, w.project_id, $2, 'submission.spam', '{}', now(), now() from webhooks w, unnest($1::text[]) as g(id)`,
      [Array.from({ length: 101_000 }, (_, n) => newId('evt', Date.now() - 101_000 + n)), formId],
    );
    await service.database.execute(`update webhooks set created_at = created_at - interval '1 hour'`);
    await submit(service, formId);
    await service.database.execute('delete from delivery_queue');

    const first = await replayMissed(service, webhook);
    const second = await replayMissed(service, webhook, first.json.next_created_after);

    expect(first.json).toMatchObject({ count: 0, more: true });
    expect(second.json).toEqual({ ok: true, count: 1, more: false, next_created_after: null });
  });

  it('are not sent from before the log of deliveries, which no longer says what was', async () => {
    await using service = await startService({
      engine,
      env: { ...withoutWorkers, DELIVERY_RETENTION_DAYS: '2' },
    });
    const { id: formId } = await service.givenPublishedForm();
    const webhook = await givenWebhook(service);
    await service.database.execute(`update webhooks set created_at = now() - interval '9 days'`);
    const day = 24 * 60 * 60 * 1000;
    await givenEvents(service, formId, 3, [3 * day, 1.9 * day, day]);

    const { json } = await replayMissed(service, webhook);

    expect(json.count).toBe(2);
  });

  it('are asked for with a time, in order, of a webhook', async () => {
    await using service = await startService({ engine, env: withoutWorkers });
    const { id: formId } = await service.givenPublishedForm();
    const webhook = await givenWebhook(service);
    const client = service.client(WebhooksService);
    const at = timestampFromDate(new Date('2026-11-21'));
    const refusalOf = async (path: string, body: object) => {
      const { status, json } = await service.post(path, body);
      return [status, json.error.details.map(({ path, message }: Detail) => `${path}: ${message}`)];
    };
    const refusedRpc = async (request: object) =>
      (await failureOf(client.replayDeliveries({ status: ReplayStatus.MISSED, ...request }))).violations;

    const ofWebhook = `/v1/webhooks/${webhook}/replay`;
    expect(await refusalOf(ofWebhook, { status: 'missed' })).toEqual([400, ['created_after: Required']]);
    const wrongOrder = { created_after: '2026-11-21', created_before: '2026-11-20T23:59:59Z' };
    for (const status of ['missed', 'failed']) {
      expect(await refusalOf(ofWebhook, { status, ...wrongOrder })).toEqual([
        400,
        ['created_before: Expected a time after created_after'],
      ]);
    }
    expect(await refusalOf(ofWebhook, { status: 'lost' })).toEqual([
      422,
      ['status: Expected one of "failed", "missed"'],
    ]);
    expect(
      await refusalOf(`/v1/forms/${formId}/replay`, { status: 'missed', created_after: '2026-11-21' }),
    ).toEqual([400, ['status: Only webhooks can miss events']]);
    expect(await refusedRpc({ webhookId: webhook })).toEqual([['created_after', 'invalid_type']]);
    expect(await refusedRpc({ formId, createdAfter: at })).toEqual([['status', 'invalid_enum_value']]);
    expect(await refusedRpc({ webhookId: webhook, createdAfter: at, status: 9 })).toEqual([
      ['status', 'invalid_enum_value'],
    ]);
    const reader = { key: await service.givenKey(['webhooks:read']) };
    expect((await service.post(ofWebhook, { status: 'missed', created_after: long }, reader)).status).toBe(
      401,
    );
    const foreign = { key: await service.givenKey(['*'], 'elsewhere') };
    expect((await service.post(ofWebhook, { status: 'missed', created_after: long }, foreign)).status).toBe(
      404,
    );
  });
});

type Detail = { path: string; message: string };

type Logged = { status: string; attempt_count: number };

async function givenWebhook(service: TestService, change: object = {}): Promise<string> {
  const webhook = { url: nobody, events: ['submission.created'], ...change };
  const { status, text, json } = await service.post('/v1/webhooks', webhook);
  if (status !== 201) throw new Error(`No webhook: ${text}`);
  return json.webhook.id;
}

/** Submits, and returns the submission's id. */
async function submit(
  service: TestService,
  formId: string,
  answers: object = {},
  options: CallOptions = {},
): Promise<string> {
  const submission = { answers: { email: 'ada@example.com', ...answers } };
  const { status, text, json } = await service.post(`/api/forms/${formId}/submissions`, submission, options);
  if (status !== 201) throw new Error(`Not accepted: ${text}`);
  return json.submission_id;
}

async function turn(service: TestService, webhook: string, active: boolean): Promise<void> {
  const { status, text } = await service.patch(`/v1/webhooks/${webhook}`, { active });
  if (status !== 200) throw new Error(`Not turned: ${text}`);
}

const replayMissed = (service: TestService, webhook: string, createdAfter = long) =>
  service.post(`/v1/webhooks/${webhook}/replay`, { status: 'missed', created_after: createdAfter });

async function logOf(service: TestService, webhook: string): Promise<Logged[]> {
  return (await service.get(`/v1/webhooks/${webhook}/deliveries`)).json.deliveries;
}

/** Events of submissions, one a millisecond up to now or as long ago as said, that nobody was sent. */
async function givenEvents(
  { database }: TestService,
  formId: string,
  count: number,
  ago = Array.from({ length: count }, (_, n) => count - n),
): Promise<void> {
  const at = Date.now();
  const given = ago.map((ms) => ({
    event: newId('evt', at - ms),
    submission: newId('sub', at - ms),
    at: new Date(at - ms).toISOString(),
  }));
  await database.execute(`update webhooks set created_at = least(created_at, now() - interval '1 hour')`);
  await database.execute(
    `with given as (
       select g.*, f.project_id, f.id as form_id, f.current_version_id as version_id
       from json_to_recordset($1::json) as g(event text, submission text, at timestamptz), forms f where f.id = $2
     ), stored as (
       insert into submissions (id, project_id, form_id, version_id, source, answers, metadata, status, created_at)
       select submission, project_id, form_id, version_id, 'api', '{}', '{}', 'accepted', at from given
     )
     insert into events (id, project_id, form_id, type, submission_id, body, created_at, fanned_out_at)
     select event, project_id, form_id, 'submission.created', submission, '{}', at, at from given`,
    [JSON.stringify(given), formId],
  );
}
