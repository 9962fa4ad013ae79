import { create, toBinary } from '@bufbuild/protobuf';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HealthCheckRequestSchema } from '../../gen/grpc/health/v1/health_pb.js';
import { WebhooksService } from '../../gen/headlessforms/v1/webhooks_pb.js';
import { protocols, startService, type TestService } from '../support/server.ts';
import { cutOff, envelope, http2Part, openHttp2, sendBytes } from '../support/wire.ts';

const healthPath = '/grpc.health.v1.Health/Check';
const listenPath = '/headlessforms.v1.WebhooksService/Listen';
const submitPath = '/headlessforms.v1.SubmissionsService/CreateSubmission';
const empty = toBinary(HealthCheckRequestSchema, create(HealthCheckRequestSchema));

let service: TestService;

beforeAll(async () => {
  service = await startService();
});
afterAll(() => service[Symbol.asyncDispose]());

describe('an RPC reply', () => {
  it.each([
    ['Connect', 'application/proto', empty],
    ['Connect that fails', 'application/proto', Buffer.from([255])],
    ['gRPC-Web', 'application/grpc-web+proto', envelope(empty)],
    ['a media type that is none', 'text/plain', empty],
  ])('by HTTP/1.1 is kept by no cache and taken for no page: %s', async (_, type, body) => {
    const reply = await fetch(service.url + healthPath, {
      method: 'POST',
      headers: { 'content-type': type },
      body: Buffer.from(body),
    });

    expect(reply.headers.get('cache-control')).toBe('no-store');
    expect(reply.headers.get('x-content-type-options')).toBe('nosniff');
  });

  it('by Connect GET is neither', async () => {
    const reply = await fetch(`${service.url}${healthPath}?encoding=json&message=%7B%7D`);

    expect(await reply.json()).toEqual({ status: 'SERVING' });
    expect(reply.headers.get('cache-control')).toBe('no-store');
    expect(reply.headers.get('x-content-type-options')).toBe('nosniff');
  });

  it.each([
    [healthPath, 'application/grpc'],
    [healthPath, 'application/proto'],
    [listenPath, 'application/grpc'],
    [listenPath, 'application/connect+proto'],
    ['/nothing', 'application/grpc'],
  ])('by HTTP/2 is neither: %s as %s', async (path, type) => {
    using connection = openHttp2(service.grpcUrl);

    const { headers } = await connection.call(path, [envelope(empty)], { 'content-type': type });

    expect(headers).toMatchObject({ 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' });
  });
});

describe('an answer about health', () => {
  it.each([
    ['/grpc.health.v1.Health/Check', 'identity'],
    ['/grpc.health.v1.Health/Check', 'gzip'],
    ['/grpc.health.v1.Health/Watch', 'identity'],
    ['/grpc.health.v1.Health/Watch', 'gzip'],
  ])('announces no encoding: %s asked in %s', async (path, encoding) => {
    using connection = openHttp2(service.grpcUrl);

    const { headers } = await connection.call(path, [envelope(empty)], {
      'content-type': 'application/grpc',
      'grpc-encoding': encoding,
      'grpc-accept-encoding': 'identity, deflate, gzip',
      'grpc-timeout': '500m',
    });

    expect(headers['content-type']).toMatch(/^application\/grpc/);
    expect(headers['grpc-encoding']).toBeUndefined();
  });
});

describe('a request with two Host headers', () => {
  it.each(['/health', healthPath, '/f/sess_x'])('answers 400: %s', async (path) => {
    const head = `GET ${path} HTTP/1.1\r\nHost: a.example\r\nhost: b.example\r\n\r\n`;

    const said = await sendBytes(service.url, Buffer.from(head));

    expect(said).toMatch(/^HTTP\/1\.1 400 /);
    expect(said).toContain('"reason":"bad_request"');
  });
});

describe('a caller that goes away', () => {
  const types = [
    [submitPath, 'application/json'],
    [submitPath, 'application/proto'],
    [submitPath, 'application/grpc-web+proto'],
    [listenPath, 'application/connect+json'],
    [listenPath, 'application/grpc-web+proto'],
    [`/api/forms/form_x/submissions`, 'application/json'],
    [`/api/forms/form_x/submissions`, 'multipart/form-data; boundary=a'],
    [`/api/forms/form_x/uploads?field=cv`, 'application/octet-stream'],
  ] as const;

  it('in the middle of its request is logged neither as an error nor as a warning', async () => {
    const before = service.logged.length;

    for (const [path, type] of types) {
      const head = [
        `POST ${path} HTTP/1.1`,
        'Host: a',
        `Content-Type: ${type}`,
        `Authorization: Bearer ${service.key}`,
      ];
      await cutOff(service.url, `${[...head, 'Content-Length: 100'].join('\r\n')}\r\n\r\n{"form`);
      await cutOff(service.url, `${[...head, 'Transfer-Encoding: chunked'].join('\r\n')}\r\n\r\n4\r\n{"fo`);
    }
    for (const type of ['application/grpc', 'application/proto', 'application/connect+proto']) {
      for (const path of [submitPath, listenPath]) {
        const headers = { 'content-type': type, authorization: `Bearer ${service.key}` };
        await sendBytes(service.grpcUrl, http2Part(path, headers, Buffer.from([0, 0, 0, 0, 9, 1])));
      }
    }
    await service.get('/health');

    expect(service.logged.slice(before)).toEqual([]);
  });

  it.each(protocols)('in the middle of a stream is logged neither, by %s', async (protocol) => {
    const before = service.logged.length;
    const stop = new AbortController();

    for await (const _ of service.client(WebhooksService, protocol).listen({}, { signal: stop.signal }))
      break;
    stop.abort();
    await service.get('/health');

    expect(service.logged.slice(before)).toEqual([]);
  });
});
