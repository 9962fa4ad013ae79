import { once } from 'node:events';
import { connect, constants } from 'node:http2';
import { setImmediate } from 'node:timers/promises';
import { gunzipSync, gzipSync } from 'node:zlib';
import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { AnySchema, anyPack } from '@bufbuild/protobuf/wkt';
import { Code, ConnectError } from '@connectrpc/connect';
import { findTrailerError } from '@connectrpc/connect/protocol-grpc';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  Health,
  HealthCheckResponseSchema,
  HealthCheckResponse_ServingStatus as Status,
} from '../../gen/grpc/health/v1/health_pb.js';
import { FailureSchema, Reason } from '../../gen/headlessforms/v1/errors_pb.js';
import { GetFormRequestSchema, GetFormResponseSchema } from '../../gen/headlessforms/v1/forms_pb.js';
import { CreateSubmissionRequestSchema } from '../../gen/headlessforms/v1/submissions_pb.js';
import { limitsOf } from '../../src/domain/methods.ts';
import { startRpcServer } from '../support/rpc-server.ts';
import { startService, type TestService } from '../support/server.ts';
import { envelope, type Http2Answer, type Http2Connection, opened, openHttp2 } from '../support/wire.ts';

const healthPath = '/grpc.health.v1.Health/Check';
const submitPath = '/headlessforms.v1.SubmissionsService/CreateSubmission';
const getFormPath = '/headlessforms.v1.FormsService/GetForm';
const nothing = new Uint8Array();

let service: TestService;
let connection: Http2Connection;

beforeAll(async () => {
  service = await startService();
  connection = openHttp2(service.grpcUrl);
});
afterAll(async () => {
  connection[Symbol.dispose]();
  await service[Symbol.asyncDispose]();
});

describe('an answer', () => {
  it('is one message, and its status comes after it', async () => {
    const { status, headers, trailers, body } = await check([envelope(nothing)]);

    expect([status, headers['content-type']]).toEqual([200, 'application/grpc+proto']);
    expect(opened(body).flags).toBe(0);
    expect(servingIn(opened(body).data)).toBe(Status.SERVING);
    expect(trailers['grpc-status']).toBe('0');
    expect([headers['grpc-status'], trailers['grpc-message']]).toEqual([undefined, undefined]);
  });

  it('that is a failure has no message but its code, its words and its details', async () => {
    const { status, trailers, body } = await getForm('form_00000000000000000000000000');

    expect([status, body.length]).toEqual([200, 0]);
    expect(statusOf({ trailers })).toBe(Code.NotFound);
    expect(trailers['grpc-message']).toBe('There is no such form');
    const failure = findTrailerError(new Headers(trailers));
    expect(trailers['grpc-status-details-bin']).toEqual(expect.any(String));
    expect(failure?.findDetails(FailureSchema)).toMatchObject([{ reason: Reason.NOT_FOUND }]);
  });

  it('is compressed as the caller accepts, from 1 KiB', async () => {
    const { id } = await service.givenPublishedForm({ description: 'a'.repeat(1500) });
    const accepting = { 'grpc-accept-encoding': 'zstd,gzip' };

    const large = await getForm(id, accepting);
    const small = await check([envelope(nothing)], accepting);

    expect(large.headers['grpc-encoding']).toBe('gzip');
    expect(opened(large.body).flags).toBe(1);
    const whole = gunzipSync(opened(large.body).data);
    expect(large.body.length).toBeLessThan(whole.length - 1400);
    expect(fromBinary(GetFormResponseSchema, whole).form?.id).toBe(id);
    expect(opened(small.body).flags).toBe(0);
    expect(servingIn(opened(small.body).data)).toBe(Status.SERVING);
  });

  it('is not compressed for callers who do not say that they can read it', async () => {
    const { id } = await service.givenPublishedForm({ description: 'a'.repeat(1500) });

    const { headers, body } = await getForm(id);

    expect(headers['grpc-encoding']).toBeUndefined();
    expect(opened(body).flags).toBe(0);
    expect(fromBinary(GetFormResponseSchema, opened(body).data).form?.id).toBe(id);
  });
});

describe('a message', () => {
  it('is read however it is divided into frames', async () => {
    const { id } = await service.givenPublishedForm();
    const bytes = envelope(submission({ formId: id, answers: { email: 'ann@example.com' } }));
    const pieces = [bytes.subarray(0, 3), bytes.subarray(3, 9), bytes.subarray(9)];

    const divided = await submit(pieces);
    const single = await submit(Array.from(bytes, (byte) => Uint8Array.of(byte)));

    expect([statusOf(divided), statusOf(single)]).toEqual([0, 0]);
    expect(await storedFor(id)).toBe(2);
  });

  it('is read compressed, if its flag says so', async () => {
    const { id } = await service.givenPublishedForm();
    const message = submission({ formId: id, answers: { email: 'ann@example.com' } });
    const headers = { 'grpc-encoding': 'gzip' };

    const compressed = await submit([envelope(gzipSync(message), 1)], headers);
    const plain = await submit([envelope(message)], headers);

    expect([statusOf(compressed), statusOf(plain)]).toEqual([0, 0]);
    expect(await storedFor(id)).toBe(2);
  });

  it('is refused if it is too large once decompressed', async () => {
    const bomb = gzipSync(new Uint8Array(limitsOf(Health.method.check).readMaxBytes + 1));

    const refusal = await check([envelope(bomb, 1)], { 'grpc-encoding': 'gzip' });

    expect(statusOf(refusal)).toBe(Code.ResourceExhausted);
    expect(refusal.body.length).toBe(0);
  });

  it('is refused if it is compressed in no way that was named', async () => {
    const refusal = await check([envelope(gzipSync(nothing), 1)]);

    expect(statusOf(refusal)).toBe(Code.InvalidArgument);
    expect(refusal.body.length).toBe(0);
  });

  it('is refused in an unknown compression, with the names of those that are known', async () => {
    const refusal = await check([envelope(nothing)], { 'grpc-encoding': 'zstd' });

    expect(statusOf(refusal)).toBe(Code.Unimplemented);
    expect(refusal.headers['grpc-accept-encoding']).toBe('gzip');
    expect(decodeURIComponent(refusal.trailers['grpc-message'] ?? '')).toContain('gzip');
    expect(refusal.body.length).toBe(0);
  });

  it('that is not of the method is its caller’s mistake', async () => {
    const refusal = await check([envelope(Uint8Array.of(0xff, 0xff))]);

    expect(statusOf(refusal)).toBe(Code.InvalidArgument);
    expect(refusal.body.length).toBe(0);
  });

  it('is read and answered in JSON', async () => {
    const json = { 'content-type': 'application/grpc+json' };

    const { headers, trailers, body } = await check([envelope(Buffer.from('{"service":""}'))], json);
    const refusal = await check([envelope(Buffer.from('{"service":'))], json);

    expect([headers['content-type'], statusOf({ trailers })]).toEqual(['application/grpc+json', 0]);
    expect(JSON.parse(opened(body).data.toString())).toEqual({ status: 'SERVING' });
    expect(statusOf(refusal)).toBe(Code.InvalidArgument);
  });
});

describe('a message that may be of any type', () => {
  it('is read and written as its type has it in JSON', async () => {
    // No RPC has one so far.
    const { check } = Health.method;
    const { input, output } = check;
    Object.assign(check, { input: AnySchema, output: AnySchema });
    const packed = create(HealthCheckResponseSchema, { status: Status.SERVING });
    const serving: object = anyPack(HealthCheckResponseSchema, packed);
    await using server = await startRpcServer(() => serving);
    const type = 'type.googleapis.com/grpc.health.v1';

    const reply = await fetch(server.url + healthPath, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: `{"@type":"${type}.HealthCheckRequest","service":"x"}`,
    });
    Object.assign(check, { input, output });

    expect([reply.status, await reply.json()]).toEqual([
      200,
      { '@type': `${type}.HealthCheckResponse`, status: 'SERVING' },
    ]);
  });
});

describe('a body that is not one message', () => {
  const bodies: [string, Code, (message: Buffer) => Buffer[]][] = [
    ['two messages', Code.Unimplemented, (message) => [message, message]],
    ['two messages in one frame', Code.Unimplemented, (message) => [Buffer.concat([message, message])]],
    ['no message', Code.Unimplemented, () => []],
    ['a part of the head', Code.InvalidArgument, (message) => [message.subarray(0, 4)]],
    ['a part of a message', Code.InvalidArgument, (message) => [message.subarray(0, -1)]],
    [
      'a message and a part of the next',
      Code.InvalidArgument,
      (message) => [message, message.subarray(0, 3)],
    ],
  ];

  it.each(bodies)('is refused, and nothing is stored: %s', async (_, code, framesOf) => {
    const { id } = await service.givenPublishedForm();
    const message = envelope(submission({ formId: id, answers: { email: 'ann@example.com' } }));

    const refusal = await submit(framesOf(message));
    const whole = await submit([message]);

    expect([statusOf(refusal), refusal.body.length]).toEqual([code, 0]);
    expect(statusOf(whole)).toBe(0);
    expect(await storedFor(id)).toBe(1);
  });
});

describe('a time-out', () => {
  it.each(['10', 'S', '-1S', '1.5S', '123456789S'])('of %s is refused', async (timeout) => {
    const refusal = await check([envelope(nothing)], { 'grpc-timeout': timeout });

    expect([statusOf(refusal), refusal.body.length]).toEqual([Code.InvalidArgument, 0]);
  });

  it.each(['601S', '99999999H'])('of %s is shortened to what a timer holds', async (timeout) => {
    const warnings: string[] = [];
    const warned = ({ name }: Error) => warnings.push(name);
    process.on('warning', warned);

    const answer = await check([envelope(nothing)], { 'grpc-timeout': timeout });
    await setImmediate();
    process.off('warning', warned);

    expect(statusOf(answer)).toBe(0);
    expect(warnings).toEqual([]);
  });

  it.each(['0m', '0n'])('of %s is over before the method is called', async (timeout) => {
    const answer = await check([envelope(nothing)], { 'grpc-timeout': timeout });

    expect([statusOf(answer), answer.body.length]).toEqual([Code.DeadlineExceeded, 0]);
  });

  it('is told to the method when it is over', async () => {
    await using server = await startRpcServer(async (_, { signal }) => {
      await once(signal, 'abort');
      throw signal.reason;
    });
    using caller = openHttp2(server.grpcUrl);

    const answer = await check([envelope(nothing)], { 'grpc-timeout': '20m' }, caller);

    expect(statusOf(answer)).toBe(Code.DeadlineExceeded);
  });
});

describe('a method that there is not', () => {
  it('is told in the frame that ends the stream, where every library reads the status', async () => {
    const session = connect(service.grpcUrl);
    using _ = { [Symbol.dispose]: () => session.destroy() };
    const stream = session.request({ ...grpc, ':method': 'POST', ':path': `${healthPath}s` });
    stream.end(envelope(nothing));

    const [headers, flags] = await once(stream.resume(), 'response');

    expect(headers).toMatchObject({ 'grpc-status': '12', 'grpc-message': 'There is no such method' });
    expect(flags & constants.NGHTTP2_FLAG_END_STREAM).toBe(constants.NGHTTP2_FLAG_END_STREAM);
  });
});

describe('what is no gRPC call', () => {
  it('is answered with 405 if it posts nothing', async () => {
    const answer = await connection.call(
      submitPath,
      [],
      { 'content-type': 'application/grpc' },
      { method: 'GET' },
    );

    expect([answer.status, answer.body.length]).toEqual([405, 0]);
  });

  it.each(['text/plain', 'application/grpc+xml', 'application/grpcs'])(
    'is answered with 415 if it posts %s',
    async (type) => {
      const answer = await check([envelope(nothing)], { 'content-type': type });

      expect([answer.status, answer.body.length]).toEqual([415, 0]);
    },
  );
});

describe('a method', () => {
  it('tells callers nothing of an error that was not meant for them', async () => {
    await using server = await startRpcServer(() => {
      throw new Error('the password is swordfish');
    });
    using caller = openHttp2(server.grpcUrl);

    const { status, headers, trailers, body } = await check([envelope(nothing)], {}, caller);

    expect([status, body.length]).toEqual([200, 0]);
    expect(trailers).toMatchObject({ 'grpc-status': '13', 'grpc-message': 'internal error' });
    expect(JSON.stringify([headers, trailers])).not.toContain('swordfish');
  });

  it('tells its words as they are, but for what a trailer cannot hold', async () => {
    await using server = await startRpcServer(() => {
      throw new ConnectError('answers.email: 100 % of Ünkn\nown~', Code.NotFound);
    });
    using caller = openHttp2(server.grpcUrl);

    const { trailers } = await check([envelope(nothing)], {}, caller);

    expect(trailers['grpc-message']).toBe('answers.email: 100 %25 of %C3%9Cnkn%0Aown~');
    expect(findTrailerError(new Headers(trailers))?.rawMessage).toBe('answers.email: 100 % of Ünkn\nown~');
  });

  it('sets headers and trailers', async () => {
    await using server = await startRpcServer((_, { responseHeader, responseTrailer }) => {
      responseHeader.set('x-before', 'a');
      responseTrailer.set('x-after', 'b');
      return { status: Status.NOT_SERVING };
    });
    using caller = openHttp2(server.grpcUrl);

    const { headers, trailers, body } = await check([envelope(nothing)], {}, caller);

    expect([headers['x-before'], trailers['x-after']]).toEqual(['a', 'b']);
    expect(servingIn(opened(body).data)).toBe(Status.NOT_SERVING);
  });
});

const grpc = { 'content-type': 'application/grpc' };

function check(frames: Uint8Array[], headers: Record<string, string> = {}, caller = connection) {
  return caller.call(healthPath, frames, { ...grpc, ...headers });
}

function submit(frames: Uint8Array[], headers: Record<string, string> = {}) {
  return connection.call(submitPath, frames, { ...grpc, ...headers });
}

function getForm(formId: string, headers: Record<string, string> = {}) {
  const message = toBinary(GetFormRequestSchema, create(GetFormRequestSchema, { formId }));
  const authorization = `Bearer ${service.key}`;
  return connection.call(getFormPath, [envelope(message)], { ...grpc, authorization, ...headers });
}

function submission(init: MessageInitShape<typeof CreateSubmissionRequestSchema>): Uint8Array {
  return toBinary(CreateSubmissionRequestSchema, create(CreateSubmissionRequestSchema, init));
}

function servingIn(data: Uint8Array): Status {
  return fromBinary(HealthCheckResponseSchema, data).status;
}

function statusOf({ trailers }: Pick<Http2Answer, 'trailers'>): number {
  return Number(trailers['grpc-status']);
}

async function storedFor(formId: string): Promise<number> {
  return (await service.get(`/v1/forms/${formId}/submissions`)).json.submissions.length;
}
