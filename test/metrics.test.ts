import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FormsService } from '../gen/headlessforms/v1/forms_pb.js';
import { MailService } from '../gen/headlessforms/v1/mail_pb.js';
import { SubmissionsService } from '../gen/headlessforms/v1/submissions_pb.js';
import { engines } from './support/database.ts';
import { failureOf } from './support/failures.ts';
import { metricIn } from './support/metrics.ts';
import { startReceiver } from './support/receiver.ts';
import { startService, type TestService } from './support/server.ts';
import { until } from './support/until.ts';

const env = { METRICS_PORT: '0', RATE_LIMIT: 'on', LOG_LEVEL: 'info', WEBHOOK_RETRY_SCHEDULE: '0,0.05' };

describe.each(engines)('metrics on %s', (engine) => {
  let service: TestService;
  let receiver: Awaited<ReturnType<typeof startReceiver>>;
  let status = 204;

  beforeAll(async () => {
    service = await startService({ engine, env });
    receiver = await startReceiver((_, response) => void response.writeHead(status).end());
  });
  afterAll(async () => {
    await service[Symbol.asyncDispose]();
    await receiver[Symbol.asyncDispose]();
  });

  it('count requests by route or RPC and status, and refusals by reason', async () => {
    const form = await service.givenPublishedForm();
    const path = `/api/forms/${form.id}/submissions`;
    await service.post(path, { answers: { email: 'ada@example.com' } });
    await service.post(path, { answers: { email: 'nobody' } });
    await service.post(path, { answers: { email: 'ada@example.com' }, _gotcha: 'x' });
    await fetch(`${service.url}/nothing/here`);
    await service.client(FormsService, 'grpc').listForms({});
    await failureOf(service.client(SubmissionsService, 'connect').createSubmission({ formId: 'none' }));

    const route = '/api/forms/:id/submissions';
    const rpc = '/headlessforms.v1.SubmissionsService/CreateSubmission';
    // Calls are counted when they have been answered.
    const metrics = await until(async () => {
      const text = await scrape();
      const answered = (labels: object) => metricIn(text, 'forms_request_duration_seconds_count', labels);
      const counted = [
        metricIn(text, 'forms_refusals_total', { route, reason: 'invalid' }),
        metricIn(text, 'forms_refusals_total', { route: rpc, reason: 'not_found' }),
        answered({ route, method: 'POST', status: '201' }),
        answered({ route: 'none', method: 'GET', status: '404' }),
        answered({ route: '/headlessforms.v1.FormsService/ListForms', status: '200' }),
        answered({ route: rpc, status: 'NotFound' }),
      ];
      return !counted.includes(undefined) && text;
    });
    const requests = (labels: object) => metricIn(metrics, 'forms_request_duration_seconds_count', labels);
    expect(requests({ route, method: 'POST', status: '201' })).toBe(1);
    expect(requests({ route, method: 'POST', status: '422' })).toBeGreaterThanOrEqual(1);
    expect(requests({ route: 'none', method: 'GET', status: '404' })).toBe(1);
    expect(requests({ route: '/headlessforms.v1.FormsService/ListForms', status: '200' })).toBe(1);
    expect(requests({ route: rpc, status: 'NotFound' })).toBe(1);
    expect(metricIn(metrics, 'forms_refusals_total', { route: rpc, reason: 'not_found' })).toBe(1);
    expect(metricIn(metrics, 'forms_submissions_accepted_total', { status: 'accepted' })).toBe(1);
    expect(metricIn(metrics, 'forms_batch_size_count', { batch: 'submissions' })).toBe(1);
    expect(metrics).not.toMatch(/nothing|form_|ada@/);
  });

  it('count what came of deliveries, and webhooks turned off', async () => {
    const delivery = { type: 'webhook', url: receiver.url };
    const form = await service.givenPublishedForm({ delivery });
    const submit = () =>
      service.post(`/api/forms/${form.id}/submissions`, { answers: { email: 'ada@example.com' } });
    for (const [answer, outcome] of [
      [204, 'delivered'],
      [500, 'retried'],
      [410, 'failed'],
    ] as const) {
      status = answer;
      await submit();
      await until(async () =>
        metricIn(await scrape(), 'forms_delivery_attempts_total', { channel: 'webhook', outcome }),
      );
    }

    const metrics = await until(async () => {
      const text = await scrape();
      const off = metricIn(text, 'forms_webhooks_turned_off_total', { cause: 'gone' });
      const mails = metricIn(text, 'forms_mails_total', { kind: 'confirmation', outcome: 'delivered' });
      return off === 1 && (mails ?? 0) > 0 && text;
    });
    expect(
      metricIn(metrics, 'forms_delivery_attempt_duration_seconds_count', { channel: 'webhook' }),
    ).toBeGreaterThanOrEqual(3);
    expect(metricIn(metrics, 'forms_batch_size_count', { batch: 'results' })).toBeGreaterThan(0);
    expect(metricIn(metrics, 'forms_work_last_success_timestamp_seconds', { work: 'poll' })).toBeGreaterThan(
      1e9,
    );
  });

  it('tell how much of each budget is used, what waits, and what runs', async () => {
    // Connections of earlier calls are closed when they were idle for seconds.
    await service.get('/health');
    const metrics = await scrape();

    expect(metricIn(metrics, 'forms_build_info', { database: engine, node: process.version })).toBe(1);
    expect(metricIn(metrics, 'forms_database_up')).toBe(1);
    expect(metricIn(metrics, 'forms_queue_oldest_due_age_seconds')).toBeLessThan(10);
    expect(metricIn(metrics, 'forms_writer_waiting_rows')).toBe(0);
    expect(metricIn(metrics, 'forms_writer_waiting_rows_limit')).toBe(4000);
    expect(metricIn(metrics, 'forms_connections')).toBeGreaterThan(0);
    expect(metricIn(metrics, 'forms_body_bytes_limit', { caller: 'key' })).toBe(128 * 1024 ** 2);
    expect(metricIn(metrics, 'forms_disk_free_bytes')).toBeGreaterThan(0);
    // Measured since the scrape before, which may have been just now.
    await until(async () => (metricIn(await scrape(), 'nodejs_eventloop_lag_p99_seconds') ?? 0) > 0);
    // So that the first one shows in a rate.
    expect(metricIn(metrics, 'forms_webhooks_turned_off_total', { cause: 'never_worked' })).toBe(0);
    expect(metricIn(metrics, 'forms_limit_refusals_total', { limit: 'disk' })).toBe(0);
    const pool = metricIn(metrics, 'forms_database_connections_limit');
    expect(pool).toBe(engine === 'postgres' ? 10 : undefined);
  });

  it('count what limits refuse, by the name of the limit, and the log has each once a minute', async () => {
    const { getMailLink } = service.client(MailService, 'connect', null);
    const before = service.logged.length;
    const reasons = [];
    for (let count = 0; count < 64; count += 1)
      reasons.push((await failureOf(getMailLink({ token: 'x' }))).reason);

    expect(reasons.slice(58).join(' ')).toBe(
      'INVALID_TOKEN INVALID_TOKEN RATE_LIMITED RATE_LIMITED RATE_LIMITED RATE_LIMITED',
    );
    expect(metricIn(await scrape(), 'forms_limit_refusals_total', { limit: 'mailed-link' })).toBe(4);
    const lines = service.logged.slice(before).filter((line) => line.includes('A limit refused a call'));
    expect(lines).toHaveLength(1);
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({ limit: 'mailed-link', client: '127.0.0.1' });
  });

  const scrape = async () => (await fetch(service.metricsUrl)).text();
});

describe('the metrics port', () => {
  it('is not a public one, and serves nothing else', async () => {
    await using service = await startService({ env });

    expect(service.metricsUrl).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/metrics$/);
    expect((await fetch(`${service.url}/metrics`)).status).toBe(404);
    expect((await fetch(service.metricsUrl.replace('/metrics', '/'))).status).toBe(404);
    expect((await fetch(service.metricsUrl, { method: 'POST' })).status).toBe(404);
    expect((await fetch(service.metricsUrl)).headers.get('content-type')).toMatch(/^text\/plain; version=/);
  });

  it('may be busy: the service says so and runs without', async () => {
    await using busy = await startReceiver();
    await using service = await startService({ env: { METRICS_PORT: String(busy.port) } });

    expect((await service.get('/health')).status).toBe(200);
    expect(service.metricsUrl).toBe('');
    expect(service.logged.join('')).toContain("METRICS_PORT can't be used");
  });
});

describe('metrics while the database does not answer', () => {
  it('say so in time', async () => {
    const { promise: blocked, resolve: release } = Promise.withResolvers<void>();
    await using service = await startService({ env, engine: 'pglite' });
    const transaction = service.database.transaction(() => blocked);

    const text = await (await fetch(service.metricsUrl)).text();

    release();
    await transaction;
    expect(metricIn(text, 'forms_database_up')).toBe(0);
    expect(metricIn(text, 'forms_queue_due')).toBeUndefined();
    expect(metricIn(text, 'forms_connections')).toBe(0);
  });
});
