import { Code, createClient } from '@connectrpc/connect';
import { createConnectTransport, createGrpcTransport } from '@connectrpc/connect-node';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Health, HealthCheckResponse_ServingStatus as Status } from '../../gen/grpc/health/v1/health_pb.js';
import { FormsService } from '../../gen/headlessforms/v1/forms_pb.js';
import { SubmissionsService } from '../../gen/headlessforms/v1/submissions_pb.js';
import { checkPorts } from '../../src/cli/admin/doctor/network.ts';
import { readConfig } from '../../src/config.ts';
import { failureOf } from '../support/failures.ts';

import { startService, type TestService } from '../support/server.ts';
import { freePort } from '../support/spawn.ts';
import { openHttp2 } from '../support/wire.ts';

let service: TestService;
let formId: string;

beforeAll(async () => {
  service = await startService();
  formId = (await service.givenPublishedForm()).id;
});
afterAll(() => service[Symbol.asyncDispose]());

describe('the port of HTTP', () => {
  it.each(['grpc', 'connect'] as const)('takes %s over HTTP/2, streams too', async (protocol) => {
    const submissions = createClient(SubmissionsService, transportOf(protocol));

    await submissions.createSubmission({ formId, answers: { email: 'ann@example.com' } });
    const pieces = [];
    for await (const { data } of submissions.exportSubmissions({ formId, format: 1 })) pieces.push(data);

    expect(Buffer.concat(pieces).toString()).toContain('ann@example.com');
  });

  it('answers over HTTP/2 only what names an RPC', async () => {
    using connection = openHttp2(service.url);

    const answers = [
      await connection.call('/health', [], {}, { method: 'GET' }),
      await connection.call(`/api/forms/${formId}/submissions`, [Buffer.from('{}')]),
      await connection.call('/', [], {}, { method: 'GET' }),
    ];

    expect(answers.map(({ status }) => status)).toEqual([404, 404, 404]);
    expect((await service.get('/health')).status).toBe(200);
  });

  it('refuses over HTTP/2 what is larger than a message may be', async () => {
    const forms = createClient(FormsService, transportOf('grpc'));

    const failure = await failureOf(forms.getForm({ formId: 'x'.repeat(300_000) }));

    expect([failure.code, failure.reason]).toEqual([Code.ResourceExhausted, 'TOO_LARGE']);
  });
});

it('is the only one where GRPC_PORT is the same', async () => {
  const port = String(await freePort());
  const env = { PORT: port, GRPC_PORT: port, HOST: '127.0.0.1' };
  const found = async () => {
    const findings = [];
    for await (const finding of checkPorts(readConfig(env))) findings.push(finding);
    return findings;
  };
  const free = await found();
  await using alone = await startService({ env });
  const transport = createGrpcTransport({ baseUrl: alone.grpcUrl });

  const { status } = await createClient(Health, transport).check({});
  const health = await fetch(`${alone.url}/health`);
  const taken = await found();

  expect([new URL(alone.url).port, new URL(alone.grpcUrl).port]).toEqual([port, port]);
  expect([status, health.status]).toEqual([Status.SERVING, 200]);
  expect([free, taken].flat()).toMatchObject([
    { level: 'ok', text: `${port} is free: no service runs` },
    { level: 'ok', text: `the service listens on ${port}` },
  ]);
});

function transportOf(protocol: 'grpc' | 'connect') {
  const options = {
    baseUrl: service.url,
    httpVersion: '2' as const,
    interceptors: [
      (next) => (request) => {
        request.header.set('authorization', `Bearer ${service.key}`);
        return next(request);
      },
    ] satisfies Parameters<typeof createGrpcTransport>[0]['interceptors'],
  };
  return protocol === 'grpc' ? createGrpcTransport(options) : createConnectTransport(options);
}
