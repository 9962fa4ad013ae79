import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { purgeCallbackOrigins } from '../../../src/store/webhooks/webhooks.ts';
import { engines } from '../../support/database.ts';
import { startReceiver } from '../../support/receiver.ts';
import { startService, type TestService } from '../../support/server.ts';
import { until } from '../../support/until.ts';
import { verifySignature } from '../../support/verify-signature.ts';

const answers = { email: 'ada@example.com' };
const metadata = { ticket: 42 };

describe.each(engines)('callbacks of sessions on %s', (engine) => {
  async function givenSession(service: TestService, given: object, options = {}) {
    const form = await service.givenPublishedForm();
    const made = await service.post(`/v1/forms/${form.id}/sessions`, { metadata, ...given }, options);
    expect(made.json.error).toBeUndefined();
    return { form, id: String(made.json.session.id), json: made.json };
  }

  it('report each end once, signed, whatever its outcome', async () => {
    await using service = await startService({ engine });
    await using receiver = await startReceiver();
    const callback = { url: `${receiver.url}/resume` };
    const submitted = await givenSession(service, { callback });
    const cancelled = await givenSession(service, { callback: { ...callback, secret: 'a secret of mine' } });
    const declined = await givenSession(service, { callback, allow_decline: true });
    const expired = await givenSession(service, { callback, expires_in: 1 });

    await service.post(`/v1/sessions/${submitted.id}/submit`, { answers });
    await service.post(`/v1/sessions/${cancelled.id}/cancel`);
    await service.post(`/v1/sessions/${declined.id}/decline`, { reason: 'Not "now"' });
    await receiver.expectRequests(4);

    const ended = receiver.received.map(({ body }) => JSON.parse(body));
    const dataOf = (id: string) => ended.filter(({ data }) => data.sessionId === id).map(({ data }) => data);
    const common = (id: string, formId: string) => ({ sessionId: id, formId, metadata });
    const { json } = await service.get(`/v1/sessions/${submitted.id}`);
    expect(dataOf(submitted.id)).toEqual([
      {
        ...common(submitted.id, submitted.form.id),
        outcome: 'submitted',
        submissionId: json.session.submission_id,
        answers,
      },
    ]);
    expect(dataOf(cancelled.id)).toEqual([
      { ...common(cancelled.id, cancelled.form.id), outcome: 'cancelled' },
    ]);
    expect(dataOf(declined.id)).toEqual([
      { ...common(declined.id, declined.form.id), outcome: 'declined', reason: 'Not "now"' },
    ]);
    expect(dataOf(expired.id)).toEqual([{ ...common(expired.id, expired.form.id), outcome: 'expired' }]);
    const secrets = new Map([
      [submitted.id, submitted.json.callback_secret],
      [cancelled.id, 'a secret of mine'],
      [declined.id, declined.json.callback_secret],
      [expired.id, expired.json.callback_secret],
    ]);
    for (const { body, headers, path } of receiver.received) {
      const { id, event, data } = JSON.parse(body);
      const header = String(headers['x-service-signature']);
      expect([path, event]).toEqual(['/resume', 'session.ended']);
      expect(headers['webhook-id']).toBe(id);
      expect(verifySignature({ header, body, secret: secrets.get(data.sessionId), now: Date.now() })).toBe(
        true,
      );
    }
    expect(cancelled.json).not.toHaveProperty('callback_secret');
    expect(json.session.callback).toEqual({ url_host: new URL(receiver.url).host, answers: true });
  });

  it('carry answers only for a key that may read them, then and at the end', async () => {
    await using service = await startService({ engine });
    await using receiver = await startReceiver();
    const weak = await service.givenKey(['sessions:write', 'forms:read']);
    const strong = await service.givenKey(['sessions:write', 'submissions:read']);
    const callback = { url: receiver.url };
    const unread = await givenSession(service, { callback }, { key: weak });
    const read = await givenSession(service, { callback }, { key: strong });
    const revoked = await givenSession(service, { callback }, { key: strong });
    const named = { ...callback, template: { all: '{{data.answers.email}}' } };
    const refused = await service.post(
      `/v1/forms/${unread.form.id}/sessions`,
      { callback: named },
      { key: weak },
    );

    await service.post(`/v1/sessions/${unread.id}/submit`, { answers });
    await service.post(`/v1/sessions/${read.id}/submit`, { answers });
    await receiver.expectRequests(2);
    await service.database.execute(`delete from api_keys where id = $1`, [await keyIdOf(service, strong)]);
    await service.post(`/v1/sessions/${revoked.id}/submit`, { answers });
    await receiver.expectRequests(3);

    const answersOf = new Map(
      receiver.received.map(({ body }) => [JSON.parse(body).data.sessionId, JSON.parse(body).data.answers]),
    );
    expect([unread.id, read.id, revoked.id].map((id) => answersOf.get(id))).toEqual([
      undefined,
      answers,
      undefined,
    ]);
    expect(unread.json.session.callback.answers).toBe(false);
    expect(refused.json.error.details).toMatchObject([
      { path: 'callback.template.all', message: 'Unknown name "data.answers.email"' },
    ]);
  });

  it('are no webhooks: not listed, read, changed, counted or turned off', async () => {
    await using service = await startService({ engine, env: { MAX_WEBHOOKS: '1' } });
    await using receiver = await startReceiver((_, response) => response.writeHead(410).end());
    const callback = { url: receiver.url };
    const { id, form } = await givenSession(service, { callback });
    await service.post(`/v1/sessions/${id}/cancel`);
    await receiver.expectRequests(1);
    const log = `/v1/forms/${form.id}/deliveries`;
    await until(async () => (await service.get(`${log}?status=failed`)).json.deliveries.length === 1);

    const [row] = await service.database.select(
      `select id, active from webhooks where form_id = 'callbacks'`,
    );
    const path = `/v1/webhooks/${String(row?.id)}`;
    expect(row?.active).toBe(true);
    expect((await service.get('/v1/webhooks')).json.webhooks).toEqual([]);
    for (const [method, at] of [
      ['GET', path],
      ['PATCH', path],
      ['DELETE', path],
      ['POST', `${path}/rotate-secret`],
      ['POST', `${path}/test`],
      ['POST', `${path}/replay`],
      ['GET', `${path}/deliveries`],
    ] as const) {
      expect((await service.call(method, at)).status).toBe(404);
    }
    const webhook = { url: 'https://example.com/', events: ['submission.created'] };
    expect((await service.post('/v1/webhooks', webhook)).status).toBe(201);
    const [delivery] = (await service.get(log)).json.deliveries;
    expect(delivery).toMatchObject({ event: 'session.ended', webhook_id: null, response_status: 410 });
    const next = await givenSession(service, { callback });
    await service.post(`/v1/sessions/${next.id}/cancel`);
    await receiver.expectRequests(2);
  });

  it('are retried, logged and replayed with one id and one body', async () => {
    await using service = await startService({ engine, env: { WEBHOOK_RETRY_SCHEDULE: '0,0.1' } });
    await using receiver = await startReceiver(({ count }, response) =>
      response.writeHead(count === 1 ? 503 : 204).end(),
    );
    const template = {
      resume: '{{data.outcome}}',
      token: '{{data.metadata.ticket}}',
      text: 'It was {{data.outcome}}',
    };
    const { id, form } = await givenSession(service, { callback: { url: receiver.url, template } });
    await service.post(`/v1/sessions/${id}/submit`, { answers });
    await receiver.expectRequests(2);
    const log = `/v1/forms/${form.id}/deliveries?status=delivered`;
    const delivery = await until(async () => {
      const { json } = await service.get(log);
      return json.deliveries.find(({ event }: { event: string }) => event === 'session.ended');
    });
    const replayed = await service.post(`/v1/webhook-deliveries/${delivery.id}/replay`);

    await receiver.expectRequests(3);

    expect(replayed.status).toBe(202);
    expect(delivery).toMatchObject({ event: 'session.ended', attempt_count: 2 });
    expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id']))).toEqual(
      new Set([delivery.event_id]),
    );
    expect(new Set(receiver.received.map(({ body }) => body))).toEqual(
      new Set(['{"resume":"submitted","token":42,"text":"It was submitted"}']),
    );
  });

  it('resume the engines of docs/agents.md by what these read', async () => {
    await using service = await startService({ engine });
    await using receiver = await startReceiver();
    const resumes = documentedResumes();
    const form = await service.givenPublishedForm();
    for (const [name, { template }] of Object.entries(resumes)) {
      for (const end of ['submit', 'cancel']) {
        const callback = { url: `${receiver.url}/${name}/${end}`, template };
        const made = await service.post(`/v1/forms/${form.id}/sessions`, { callback });
        await service.post(
          `/v1/sessions/${made.json.session.id}/${end}`,
          end === 'submit' ? { answers } : undefined,
        );
      }
    }
    await receiver.expectRequests(8);

    const bodies = new Map(receiver.received.map(({ path, body }) => [path, JSON.parse(body)]));
    const sub = expect.stringMatching(/^sub_/);
    expect(bodies.get('/n8n/submit')).toEqual({ outcome: 'submitted', reason: null, answers });
    expect(bodies.get('/n8n/cancel')).toEqual({ outcome: 'cancelled', reason: null, answers: null });
    expect(bodies.get('/Windmill/submit')).toEqual({ outcome: 'submitted', answers, submission: sub });
    expect(bodies.get('/Activepieces/submit')).toEqual({ data: { outcome: 'submitted', answers } });
    const task = bodies.get('/StepFunctions/submit');
    expect(task).toEqual({ taskToken: expect.any(String), output: expect.any(String) });
    expect(JSON.parse(task.output)).toEqual({ outcome: 'submitted', submission: sub });
    const cancelled = JSON.parse(bodies.get('/StepFunctions/cancel').output);
    expect(cancelled).toEqual({ outcome: 'cancelled', submission: '' });
  });

  it('go with the submission whose answers they carry, and leave no origin that nothing goes to', async () => {
    await using service = await startService({ engine, env: { WEBHOOK_RETRY_SCHEDULE: '0,3600' } });
    await using receiver = await startReceiver((_, response) => response.writeHead(503).end());
    const { database } = service;
    const { id } = await givenSession(service, { callback: { url: receiver.url } });
    const { json } = await service.post(`/v1/sessions/${id}/submit`, { answers });
    await receiver.expectRequests(1);
    const later = new Date(Date.now() + 60_000);
    const kept = await purgeCallbackOrigins(database, later, 10);

    await service.call('DELETE', `/v1/submissions/${json.submission_id}`);

    expect(await database.select(`select id from events where type = 'session.ended'`)).toEqual([]);
    expect(await database.select(`select id from delivery_queue where kind = 'session.ended'`)).toEqual([]);
    expect([kept, await purgeCallbackOrigins(database, new Date(0), 10)]).toEqual([0, 0]);
    expect(await purgeCallbackOrigins(database, later, 10)).toBe(1);
  });

  it('wait while their origin keeps failing, which delays no other origin', async () => {
    await using service = await startService({ engine, env: { WEBHOOK_RETRY_SCHEDULE: '0,3600' } });
    await using dead = await startReceiver((_, response) => response.writeHead(500).end());
    await using receiver = await startReceiver();
    // Made before, since an origin is left alone for seconds only.
    const held = await givenSession(service, { callback: { url: `${dead.url}/held` } });
    const other = await givenSession(service, { callback: { url: receiver.url } });
    for (let n = 0; n < 5; n += 1) {
      const { id } = await givenSession(service, { callback: { url: `${dead.url}/${n}` } });
      await service.post(`/v1/sessions/${id}/cancel`);
    }
    await dead.expectRequests(5);
    await until(async () => {
      const open = await service.database.select('select id from webhooks where open_until is not null');
      return open.length === 1;
    });

    await service.post(`/v1/sessions/${held.id}/cancel`);
    await service.post(`/v1/sessions/${other.id}/cancel`);
    await receiver.expectRequests(1);

    const [waiting] = (await service.get(`/v1/forms/${held.form.id}/deliveries`)).json.deliveries;
    expect(waiting).toMatchObject({ attempt_count: 0, error: expect.stringContaining('the last attempts') });
    expect(dead.received).toHaveLength(5);
  });

  it('report one outcome of ends at once, the one that the session has', async () => {
    await using service = await startService({ engine });
    await using receiver = await startReceiver();
    const sessions = await Promise.all(
      Array.from({ length: 8 }, () =>
        givenSession(service, { callback: { url: receiver.url }, expires_in: 2 }),
      ),
    );
    await Promise.all(
      sessions.flatMap(({ id }) => [
        service.post(`/v1/sessions/${id}/submit`, { answers }),
        service.post(`/v1/sessions/${id}/cancel`),
        service.post(`/v1/sessions/${id}/submit`, { answers }),
      ]),
    );

    await receiver.expectRequests(sessions.length);
    await until(async () => {
      const pending = await service.database.select('select id from delivery_queue where channel = $1', [
        'webhook',
      ]);
      return pending.length === 0;
    });

    const told = receiver.received.map(({ body }) => JSON.parse(body).data);
    expect(told).toHaveLength(sessions.length);
    for (const { id } of sessions) {
      const { json } = await service.get(`/v1/sessions/${id}`);
      expect(told.filter(({ sessionId }) => sessionId === id)).toMatchObject([
        { outcome: json.session.status },
      ]);
    }
  });

  it('need a key, a public URL and names that they carry; a repeated call shows the same secret', async () => {
    const strict = { WEBHOOK_ALLOW_PRIVATE: 'false', REQUIRE_API_KEY: 'false', DELIVERY_WORKERS: '0' };
    await using service = await startService({ engine, env: strict });
    const form = await service.givenPublishedForm();
    const path = `/v1/forms/${form.id}/sessions`;
    const callback = { url: 'https://example.com/resume' };

    const keyless = await service.post(path, { callback }, { key: null });
    expect([keyless.status, keyless.json.error.reason]).toEqual([401, 'missing_key']);
    const refused = await service.post(path, {
      callback: {
        url: 'https://127.0.0.1/',
        template: { a: '{{data.source}}', b: '{{data.url}}' },
      },
    });
    expect(refused.status).toBe(422);
    expect(refused.json.error.details.map(({ path: at }: { path: string }) => at)).toEqual([
      'callback.url',
      'callback.template.a',
      'callback.template.b',
    ]);
    const short = await service.post(path, { callback: { ...callback, secret: 'short' } });
    expect(short.json.error.details).toMatchObject([{ path: 'callback.secret', code: 'too_small' }]);
    const headers = { 'idempotency-key': 'once' };
    const first = await service.post(path, { callback }, { headers });
    const again = await service.post(path, { callback }, { headers });
    const another = await service.post(path, { callback: { ...callback, template: { a: 1 } } }, { headers });
    expect(first.json.callback_secret).toMatch(/^whsec_/);
    expect(again.json).toEqual(first.json);
    expect(another.status).toBe(409);
  });
});

/** The callbacks of docs/agents.md, by the engine that they resume. */
function documentedResumes(): Record<string, { url: string; template: object }> {
  const text = readFileSync(join(import.meta.dirname, '../../../docs/agents.md'), 'utf8');
  const found = text.matchAll(/^\*\*(\w+)\*\*:[^\n]*\n\n```json\n(.*?)\n```/gms);
  return Object.fromEntries([...found].map(([, name, json]) => [name, JSON.parse(String(json))]));
}

async function keyIdOf(service: TestService, key: string): Promise<unknown> {
  const [row] = await service.database.select('select id from api_keys where last4 = $1', [key.slice(-4)]);
  return row?.id;
}
