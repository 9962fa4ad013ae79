import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SubmissionsService } from '../../gen/headlessforms/v1/submissions_pb.js';
import { engines } from '../support/database.ts';
import { startReceiver } from '../support/receiver.ts';
import { startService, type TestService } from '../support/server.ts';
import { until } from '../support/until.ts';
import { type CollectedSpan, startCollector } from './otlp.ts';

const answers = { email: 'ada.lovelace@example.com', message: 'a secret between us' };

describe.each(engines)('traces on %s', (engine) => {
  let service: TestService;
  let collector: Awaited<ReturnType<typeof startCollector>>;
  let receiver: Awaited<ReturnType<typeof startReceiver>>;
  let failing = 0;

  beforeAll(async () => {
    collector = await startCollector();
    receiver = await startReceiver((_, response) => {
      failing -= 1;
      response.writeHead(failing >= 0 ? 500 : 204).end();
    });
    service = await startService({
      engine,
      env: {
        OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
        WEBHOOK_RETRY_SCHEDULE: '0,0.05',
        LOG_LEVEL: 'info',
      },
    });
  });
  afterAll(async () => {
    await service[Symbol.asyncDispose]();
    await receiver[Symbol.asyncDispose]();
    await collector[Symbol.asyncDispose]();
  });

  it('lead from the request over its batch to each attempt of its deliveries, and on to the receiver', async () => {
    const form = await service.givenPublishedForm({
      delivery: { type: 'webhook', url: `${receiver.url}/secret/path` },
    });
    const listed = await service.get('/v1/webhooks');
    const changed = await service.patch(`/v1/webhooks/${listed.json.webhooks[0].id}`, { traceparent: true });
    expect(listed.json.webhooks[0]).not.toHaveProperty('traceparent');
    expect(changed.json.webhook.traceparent).toBe(true);
    // The first attempt has the lease of the commit, the second is claimed from the queue.
    failing = 1;

    const [traceId, callerSpan] = ['0af7651916cd43dd8448eb211c80319c', 'b7ad6b7169203331'];
    const headers = { traceparent: `00-${traceId}-${callerSpan}-01`, 'x-request-id': 'req-1' };
    await service.post(`/api/forms/${form.id}/submissions?q=query-text`, { answers }, { headers });
    const [failed, delivered] = await receiver.expectRequests(2);
    const ofTrace = () => collector.spans.filter((span) => span.traceId === traceId);
    await until(() => ofTrace().filter(({ name }) => name === 'deliver webhook').length === 2);

    const request = named(ofTrace(), 'POST /api/forms/:id/submissions');
    const rpc = named(ofTrace(), 'headlessforms.v1.SubmissionsService/CreateSubmission');
    const stored = named(ofTrace(), 'store submission');
    const attempts = ofTrace().filter(({ name }) => name === 'deliver webhook');
    expect(request).toMatchObject({ parentId: callerSpan, attributes: { 'forms.request_id': 'req-1' } });
    expect(rpc?.parentId).toBe(request?.spanId);
    expect(stored?.parentId).toBe(rpc?.spanId);
    expect(attempts.map(({ parentId }) => parentId)).toEqual([rpc?.spanId, rpc?.spanId]);
    expect(attempts.map(({ attributes }) => attributes['forms.delivery.outcome'])).toEqual([
      'retried',
      'delivered',
    ]);
    expect(attempts[0]?.failure).toBe('Answered 500.');
    expect([failed, delivered].map((hit) => hit?.headers.traceparent)).toEqual(
      attempts.map(({ spanId }) => `00-${traceId}-${spanId}-01`),
    );
    const batch = collector.spans.find(({ spanId }) => spanId === stored?.links[0]?.spanId);
    expect(batch?.name).toBe('store submissions');
    expect(batch?.links).toContainEqual({ traceId, spanId: rpc?.spanId });
    const line = service.logged
      .map((line) => JSON.parse(line))
      .find(({ requestId }) => requestId === 'req-1');
    expect(line).toMatchObject({ traceId, status: 201 });
  });

  it('lead to mails, and leave out what belongs to no recorded trace', async () => {
    const form = await service.givenPublishedForm();
    const before = (await service.mails()).length;
    const submissions = service.client(SubmissionsService, 'grpc', service.key, {
      traceparent: '00-1af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
    });
    await submissions.createSubmission({ formId: form.id, answers });
    const unrecorded = { traceparent: '00-2af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00' };
    await service.post(`/api/forms/${form.id}/submissions`, { answers }, { headers: unrecorded });
    await until(async () => (await service.mails()).length >= before + 2);

    const mail = await until(() =>
      collector.spans.find(({ traceId, name }) => traceId.startsWith('1af7') && name === 'deliver mail'),
    );
    expect(mail.attributes).toMatchObject({
      'forms.delivery.kind': 'owner',
      'forms.delivery.outcome': 'delivered',
    });
    expect(collector.spans.filter(({ traceId }) => traceId.startsWith('2af7'))).toEqual([]);
  });

  it('say when a webhook begins to fail, and when it works again', async () => {
    const form = await service.givenPublishedForm({
      delivery: { type: 'webhook', url: `${receiver.url}/secret/path` },
    });
    failing = 10;
    for (let sent = 0; sent < 5; sent += 1)
      await service.post(`/api/forms/${form.id}/submissions`, { answers });

    await until(() => collector.text().includes('webhook opened'));

    expect(collector.spans.map(({ name }) => name)).toContain('webhook health');
    expect(collector.text()).toContain(new URL(receiver.url).host);
  });

  it('hold no answer, address, key, query, or path', async () => {
    await fetch(`${service.url}/un-known/path`);
    await until(() => collector.spans.some(({ name }) => name === 'GET'));

    const secrets = [
      'ada.lovelace',
      'a secret between us',
      'owner@example.com',
      service.key,
      'secret/path',
      'query-text',
      'un-known',
    ];
    expect(secrets.filter((secret) => collector.text().includes(secret))).toEqual([]);
  });
});

describe('a collector that refuses what it gets', () => {
  it('costs a warning', async () => {
    await using refusing = await startReceiver((_, response) => void response.writeHead(400).end());
    await using service = await startService({ env: { OTEL_EXPORTER_OTLP_ENDPOINT: refusing.url } });

    expect((await service.get('/health')).status).toBe(200);
    await until(() => service.logged.some((line) => line.includes('Traces could not be sent')));
  });
});

function named(spans: CollectedSpan[], name: string): CollectedSpan | undefined {
  return spans.find((span) => span.name === name);
}
