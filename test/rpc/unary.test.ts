import { once } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import { gunzipSync, gzipSync } from 'node:zlib';
import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import { findTrailerError } from '@connectrpc/connect/protocol-grpc';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FailureSchema, Reason } from '../../gen/forms/v1/errors_pb.js';
import { GetFormRequestSchema, GetFormResponseSchema } from '../../gen/forms/v1/forms_pb.js';
import { CreateSubmissionRequestSchema } from '../../gen/forms/v1/submissions_pb.js';
import {
  Health,
  HealthCheckRequestSchema,
  HealthCheckResponseSchema,
  HealthCheckResponse_ServingStatus as Status,
} from '../../gen/grpc/health/v1/health_pb.js';
import { limitsOf } from '../../src/domain/limits/message-limits.ts';
import { startRpcServer } from '../support/rpc-server.ts';
import { startService, type TestService } from '../support/server.ts';
import { envelope, type Http2Answer, type Http2Connection, opened, openHttp2 } from '../support/wire.ts';

const healthPath = '/grpc.health.v1.Health/Check';
const submitPath = '/forms.v1.SubmissionsService/CreateSubmission';
const getFormPath = '/forms.v1.FormsService/GetForm';
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
    expect(trailers['grpc-message']).toBe('There%20is%20no%20such%20form');
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
    expect(trailers).toMatchObject({ 'grpc-status': '13', 'grpc-message': 'internal%20error' });
    expect(JSON.stringify([headers, trailers])).not.toContain('swordfish');
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

// But for the details of failures that Connect finds by itself, which have none there.
describe('every answer', () => {
  const message = envelope(nothing);
  const health = (name: string) =>
    toBinary(HealthCheckRequestSchema, create(HealthCheckRequestSchema, { service: name }));
  const service = (name: string) => envelope(health(name));
  const calls: [string, Uint8Array[], Record<string, string>][] = [
    ['a message', [message], {}],
    ['JSON', [envelope(Buffer.from('{"service":""}'))], { 'content-type': 'application/grpc+json' }],
    ['a compressed message', [envelope(gzipSync(nothing), 1)], { 'grpc-encoding': 'gzip' }],
    ['a message that is no gzip', [envelope(Uint8Array.of(1, 2), 1)], { 'grpc-encoding': 'gzip' }],
    ['a caller who reads gzip', [message], { 'grpc-accept-encoding': 'br,gzip' }],
    ['a time-out', [message], { 'grpc-timeout': '5S' }],
    ['a time-out that is too long', [message], { 'grpc-timeout': '601S' }],
    ['a failure of the method', [service('refused')], {}],
    ['headers and trailers', [service('headers')], {}],
    ['two messages', [message, message], {}],
    ['no message', [], {}],
    ['a part of a message', [service('whole').subarray(0, -1)], {}],
    ['another type of content', [message], { 'content-type': 'application/grpc+xml' }],
  ];
  const byWeb = calls.map(([what, frames, { 'content-type': type = 'application/grpc', ...headers }]) => {
    const webType = type.replace('grpc', 'grpc-web');
    return [`${what} by gRPC-Web`, frames, { ...headers, 'content-type': webType }] as (typeof calls)[number];
  });

  const proto = { 'content-type': 'application/proto' };
  const json = { 'content-type': 'application/json' };
  const byConnect = (
    [
      ['a message', [nothing], proto],
      ['JSON', [Buffer.from('{"service":""}')], json],
      [
        'JSON with its charset',
        [Buffer.from('{"service":""}')],
        { 'content-type': 'Application/JSON; charset=utf-8' },
      ],
      ['JSON with an unknown field', [Buffer.from('{"other":1}')], json],
      ['what is no JSON', [Buffer.from('{"service":')], json],
      ['what is no message', [Uint8Array.of(0xff, 0xff)], proto],
      ['a compressed message', [gzipSync(health('zip'))], { ...proto, 'content-encoding': 'gzip' }],
      ['a message that is no gzip', [Uint8Array.of(1, 2)], { ...proto, 'content-encoding': 'gzip' }],
      ['an unknown compression', [nothing], { ...proto, 'content-encoding': 'zstd' }],
      ['a caller who reads gzip', [nothing], { ...proto, 'accept-encoding': 'br, gzip' }],
      ['a long failure for who reads gzip', [health('long')], { ...proto, 'accept-encoding': 'gzip' }],
      ['a time-out', [nothing], { ...proto, 'connect-timeout-ms': '5000' }],
      ['a time-out that is too long', [nothing], { ...proto, 'connect-timeout-ms': '9999999999' }],
      ['a time-out that is no number', [nothing], { ...proto, 'connect-timeout-ms': '5s' }],
      ['a failure of the method', [health('refused')], proto],
      ['a failure that was not meant for callers', [health('broken')], proto],
      ['headers and trailers', [health('headers')], proto],
      ['a stream of one message', [message], { 'content-type': 'application/connect+proto' }],
      ['another type of content', [nothing], { 'content-type': 'application/xml' }],
    ] satisfies typeof calls
  ).map(([what, frames, headers]): (typeof calls)[number] => [`${what} by Connect`, frames, headers]);

  it.each([...calls, ...byWeb, ...byConnect])(
    'is what Connect’s own handler gives: %s',
    async (_what, frames, headers) => {
      const answering: Parameters<typeof startRpcServer>[0] = (
        request,
        { responseHeader, responseTrailer },
      ) => {
        const metadata = { 'x-after': 'failure' };
        if (request.service === 'refused')
          throw new ConnectError('Ünknown', Code.NotFound, metadata, [
            { desc: FailureSchema, value: { reason: 1 } },
          ]);
        if (request.service === 'long') throw new ConnectError('long '.repeat(500), Code.NotFound, metadata);
        if (request.service === 'broken') throw new Error('the password is swordfish');
        responseHeader.set('x-before', request.service);
        responseTrailer.set('x-after', 'b');
        return { status: Status.SERVING };
      };
      await using ours = await startRpcServer(answering);
      await using theirs = await startRpcServer(answering, undefined, { unaryByConnect: true });
      using toOurs = openHttp2(ours.grpcUrl);
      using toTheirs = openHttp2(theirs.grpcUrl);

      const { headers: ourHeaders, ...answer } = await check(
        frames,
        { 'x-request-id': 'same', ...headers },
        toOurs,
      );
      const { headers: theirHeaders, ...expected } = await check(
        frames,
        { 'x-request-id': 'same', ...headers },
        toTheirs,
      );

      expect(answer).toEqual(expected);
      expect({ ...ourHeaders, date: '' }).toEqual({ ...theirHeaders, date: '' });
    },
  );
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
