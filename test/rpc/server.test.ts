import { once } from 'node:events';
import { Agent, type ClientRequest, request } from 'node:http';
import { connect, constants } from 'node:http2';
import type { Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  Health,
  HealthCheckRequestSchema,
  HealthCheckResponse_ServingStatus as Status,
} from '../../gen/grpc/health/v1/health_pb.js';
import {
  CreateSubmissionRequestSchema,
  SubmissionsService,
} from '../../gen/headlessforms/v1/submissions_pb.js';
import { limitsOf } from '../../src/domain/methods.ts';
import { startRpcServer } from '../support/rpc-server.ts';
import { protocols, startService, type TestService } from '../support/server.ts';
import { until } from '../support/until.ts';
import {
  envelope,
  http2End,
  http2Part,
  http2Reset,
  openHttp2,
  sendBytes,
  sendUnended,
} from '../support/wire.ts';

const { NGHTTP2_CANCEL, NGHTTP2_NO_ERROR } = constants;
const { readMaxBytes } = limitsOf(Health.method.check);
const submitPath = '/headlessforms.v1.SubmissionsService/CreateSubmission';
const healthPath = '/grpc.health.v1.Health/Check';
const connectHeaders = { 'content-type': 'application/proto' };
const grpcHeaders = { 'content-type': 'application/grpc' };
const answers = { email: 'ann@example.com' };

/** More than the buffers of a connection hold. */
const MANY_BYTES = 128 * 1024 * 1024;

let service: TestService;

beforeAll(async () => {
  service = await startService();
});
afterAll(() => service[Symbol.asyncDispose]());

describe('a body that is cut off', () => {
  const overHttp1: [string, (part: Buffer, whole: Buffer) => Buffer][] = [
    ['ends short of its content-length', (part, whole) => http1({ 'content-length': whole.length }, part)],
    ['ends between two chunks', (part) => http1({ 'transfer-encoding': 'chunked' }, chunk(part))],
    [
      'goes on with what is no chunk',
      (part) => http1({ 'transfer-encoding': 'chunked' }, chunk(part), 'no chunk\r\n'),
    ],
  ];
  const overHttp2: [string, (part: Buffer, whole: Buffer) => Buffer][] = [
    ['is cancelled', (part) => cut(part, http2Reset(NGHTTP2_CANCEL))],
    ['is reset without an error', (part) => cut(part, http2Reset(NGHTTP2_NO_ERROR))],
    ['loses its connection', (part) => cut(part)],
    [
      'ends short of its content-length',
      (part, whole) => cut(part, http2End(), { 'content-length': String(whole.length) }),
    ],
  ];

  it.each(overHttp1)('over HTTP/1.1 stores nothing: it %s', async (_, bytesOf) => {
    const { id, part, whole } = await givenCall();

    const said = await sendBytes(service.url, bytesOf(part, whole));

    expect(said).toMatch(/^HTTP\/1\.1 400 /);
    expect(await storedFor(id)).toEqual([]);
  });

  it.each(overHttp2)('over HTTP/2 stores nothing: it %s', async (_, bytesOf) => {
    const { id, part, whole } = await givenCall();

    await sendBytes(service.grpcUrl, bytesOf(part, whole));

    expect(await storedFor(id)).toEqual([]);
  });

  it('would have been stored if it had ended there', async () => {
    const { id, part } = await givenCall();

    // Node ends a connection that its client has ended, with or without a reply.
    const said = await sendUnended(service.url, [
      http1({ 'transfer-encoding': 'chunked', connection: 'close' }, chunk(part), '0\r\n\r\n'),
    ]);
    await sendBytes(service.grpcUrl, cut(part, http2End()));

    expect(said).toMatch(/^HTTP\/1\.1 200 /);
    expect(await storedFor(id)).toEqual(['api', 'api']);
  });

  const cut = (part: Buffer, end: Buffer = Buffer.alloc(0), headers = {}) =>
    Buffer.concat([http2Part(submitPath, { ...connectHeaders, ...headers }, part), end]);

  function http1(headers: Record<string, string | number>, ...body: (Buffer | string)[]): Buffer {
    const lines = Object.entries({ host: 'localhost', ...connectHeaders, ...headers });
    const head = [`POST ${submitPath} HTTP/1.1`, ...lines.map(([name, value]) => `${name}: ${value}`)];
    return Buffer.concat([head.join('\r\n'), '\r\n\r\n', ...body].map((piece) => Buffer.from(piece)));
  }

  function chunk(data: Buffer): Buffer {
    return Buffer.concat([Buffer.from(`${data.length.toString(16)}\r\n`), data, Buffer.from('\r\n')]);
  }

  /** A call to a new form, whole and without its last field: a message that could be stored as well. */
  async function givenCall() {
    const { id } = await service.givenPublishedForm();
    const part = submission({ formId: id, answers });
    const whole = submission({ formId: id, answers, idempotencyKey: 'not to be sent' });
    if (!whole.subarray(0, part.length).equals(part)) throw new Error('The part is no beginning of the call');
    return { id, part, whole };
  }

  function submission(init: MessageInitShape<typeof CreateSubmissionRequestSchema>): Buffer {
    return Buffer.from(toBinary(CreateSubmissionRequestSchema, create(CreateSubmissionRequestSchema, init)));
  }

  /** The sources of what a form was sent, once it has what is submitted after it. */
  async function storedFor(formId: string): Promise<string[]> {
    const last = 'the last';
    await service.client(SubmissionsService, 'connect').createSubmission({ formId, answers, source: last });
    const { json } = await service.get(`/v1/forms/${formId}/submissions`);
    const sources: string[] = json.submissions.map(({ source }: { source: string }) => source);
    expect(sources).toContain(last);
    return sources.filter((source) => source !== last);
  }
});

describe('a message', () => {
  it.each(protocols)(
    'of the largest size is read over %s, and one more byte is refused',
    async (protocol) => {
      const health = service.client(Health, protocol, null);
      const refusalOf = (error: unknown) => ConnectError.from(error);

      const read = await health.check(messageOf(readMaxBytes)).then(String, refusalOf);
      const refusal = await health.check(messageOf(readMaxBytes + 1)).then(String, refusalOf);

      expect(read).toMatchObject({ code: Code.NotFound, rawMessage: 'There is no such service' });
      expect(refusal).toMatchObject({ code: Code.ResourceExhausted });
      expect((await health.check({})).status).toBe(Status.SERVING);
    },
  );

  it('of the largest size is read to its last byte, behind the head of gRPC', async () => {
    using connection = openHttp2(service.grpcUrl);
    const bytes = envelope(toBinary(HealthCheckRequestSchema, messageOf(readMaxBytes)));

    const { trailers } = await connection.call(
      healthPath,
      [bytes.subarray(0, -1), bytes.subarray(-1)],
      grpcHeaders,
    );

    expect(trailers['grpc-status']).toBe(String(Code.NotFound));
  });

  const tooLarge = new Uint8Array(readMaxBytes + 6);
  const largeHead = new Uint8Array([0, 0x7f, 0, 0, 0]);
  const withLength = { ...connectHeaders, 'content-length': String(tooLarge.length + 1) };
  const grpcWebHeaders = { 'content-type': 'application/grpc-web+proto' };
  const unended: [string, Record<string, string>, Uint8Array, number, RegExp][] = [
    ['Connect with a length', withLength, tooLarge, 429, /"code":"resource_exhausted"/],
    ['Connect in chunks', connectHeaders, tooLarge, 429, /"code":"resource_exhausted"/],
    ['gRPC-Web', grpcWebHeaders, Buffer.concat([largeHead, tooLarge]), 200, /grpc-status: 8\r\n/],
  ];

  it.each(unended)(
    'that is too large is refused before its end over HTTP/1.1, and the connection serves on: %s',
    async (_, headers, part, status, said) => {
      using connection = keptConnection();
      const call = connection.post(healthPath, headers);
      call.write(part);

      const [refusal] = await once(call, 'response');
      const words = await text(refusal);
      call.end('x');
      await once(call, 'close');
      const next = connection.post(healthPath, { 'content-type': 'application/json' }).end('{}');
      const [served] = await once(next, 'response');

      expect([refusal.statusCode, words]).toEqual([status, expect.stringMatching(said)]);
      expect(await text(served)).toBe('{"status":"SERVING"}');
      expect(next.reusedSocket).toBe(true);
    },
  );

  it('that is too large is refused before its end over HTTP/2, and the connection serves on', async () => {
    using connection = openHttp2(service.grpcUrl);

    const grpc = await connection.call(healthPath, [largeHead, tooLarge], grpcHeaders, { ended: false });
    const connect = await connection.call(healthPath, [tooLarge], connectHeaders, { ended: false });
    const served = await connection.call(healthPath, [envelope(new Uint8Array())], grpcHeaders);

    expect(grpc.trailers['grpc-status']).toBe(String(Code.ResourceExhausted));
    expect([connect.status, connect.body.toString()]).toEqual([429, expect.stringMatching(/exhausted/)]);
    expect(served.trailers['grpc-status']).toBe('0');
  });

  it.each([
    ['HTTP/1.1', () => request(service.url + healthPath, { method: 'POST', headers: connectHeaders })],
    ['HTTP/2', () => http2Call(service.grpcUrl, healthPath, connectHeaders)],
  ])('that goes on and on after its refusal is cut off over %s', async (_, open) => {
    const call: Writable = open();
    call.on('error', () => undefined);
    const closed = new Promise((resolve) => call.on('close', resolve));
    const piece = Buffer.alloc(1024 * 1024);

    let sent = 0;
    while (!call.destroyed && sent < MANY_BYTES) {
      await Promise.race([closed, new Promise((written) => call.write(piece, written))]);
      sent += piece.length;
    }
    call.destroy();

    expect(sent).toBeGreaterThan(2 * readMaxBytes);
    expect(sent).toBeLessThan(MANY_BYTES);
  });

  /** A request of this size in protobuf. */
  function messageOf(bytes: number) {
    const tagAndLength = 4;
    return create(HealthCheckRequestSchema, { service: 'x'.repeat(bytes - tagAndLength) });
  }

  function keptConnection() {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    return {
      post: (path: string, headers: Record<string, string>): ClientRequest =>
        request(service.url + path, { method: 'POST', headers, agent }),
      [Symbol.dispose]: () => agent.destroy(),
    };
  }
});

describe('what names no RPC', () => {
  it('is answered as any other unknown path is, on the port of HTTP', async () => {
    const reply = await service.post('/headlessforms.v1.NothingService/Nothing', {});

    expect([reply.status, reply.json.error.reason]).toEqual([404, 'not_found']);
  });

  it('is answered with 404 and nothing else on the port of gRPC', async () => {
    using connection = openHttp2(service.grpcUrl);

    const paths = ['/headlessforms.v1.NothingService/Nothing', '/v1/forms', '/'];
    const replies = await Promise.all(paths.map((path) => connection.call(path, [])));

    expect(replies.map(({ status, body }) => [status, body.length])).toEqual(paths.map(() => [404, 0]));
  });
});

it('answers a read by GET, whose message is in the URL', async () => {
  const { id } = await service.givenPublishedForm();
  const message = encodeURIComponent(JSON.stringify({ formId: id }));

  const reply = await fetch(
    `${service.url}/headlessforms.v1.FormsService/GetForm?connect=v1&encoding=json&message=${message}`,
    { headers: { authorization: `Bearer ${service.key}` } },
  );

  expect([reply.status, await reply.json()]).toMatchObject([200, { form: { id, name: 'Contact' } }]);
});

describe.each(['HTTP/1.1', 'HTTP/2'])('a method, over %s', (version) => {
  it('is told that its caller has gone', async () => {
    const called = Promise.withResolvers<AbortSignal>();
    await using server = await startRpcServer(async (_, { signal }) => {
      called.resolve(signal);
      await once(signal, 'abort');
      return {};
    });

    const hangUp = callJson(server);
    const signal = await called.promise;
    hangUp();
    await until(() => signal.aborted);
    await server[Symbol.asyncDispose]();

    expect(ConnectError.from(signal.reason).code).toBe(Code.Canceled);
    expect(server.logged).toEqual([]);
  });

  it('whose answer can’t be made ends the connection or stream, and the log has the reason', async () => {
    const outOfOrder = () => {
      throw new Error('out of order');
    };
    await using server = await startRpcServer(outOfOrder, { callLog: { fail: outOfOrder } });

    const ended = Promise.withResolvers<void>();
    callJson(server, ended.resolve);
    await ended.promise;

    expect(server.logged.map((line) => JSON.parse(line))).toMatchObject([
      { level: 50, rpc: healthPath, err: { message: 'out of order' } },
    ]);
  });

  /** Calls the method and gives what hangs up; `ended` hears that there will be no answer. */
  function callJson(server: { url: string; grpcUrl: string }, ended = () => {}): () => void {
    if (version === 'HTTP/2') {
      const connection = openHttp2(server.grpcUrl);
      const frames = [Buffer.from('{}')];
      connection
        .call(healthPath, frames, { 'content-type': 'application/json' })
        .then(({ status }) => status === 0 && ended(), ended);
      return () => connection[Symbol.dispose]();
    }
    const headers = { 'content-type': 'application/json' };
    const outgoing = request(server.url + healthPath, { method: 'POST', headers, agent: false });
    outgoing.on('error', ended).end('{}');
    return () => outgoing.destroy();
  }
});

/** A call that is not ended, on a connection of its own. */
function http2Call(url: string, path: string, headers: Record<string, string>): Writable {
  const session = connect(url);
  const stream = session.request({ ':method': 'POST', ':path': path, ...headers });
  stream.once('close', () => session.destroy());
  return stream.resume();
}
