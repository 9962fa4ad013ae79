import { gzipSync } from 'node:zlib';
import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import { findTrailerError } from '@connectrpc/connect/protocol-grpc';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from '../../gen/google/rpc/error_details_pb.js';
import { FailureSchema, NextCall, Reason, ViolationCode } from '../../gen/headlessforms/v1/errors_pb.js';
import {
  CreateSubmissionRequestSchema,
  SubmissionsService,
} from '../../gen/headlessforms/v1/submissions_pb.js';
import { failed, invalid } from '../../src/domain/errors/failure.ts';
import { trailerError } from '../../src/rpc/network/protocols.ts';
import { startService, type TestService } from '../support/server.ts';
import { envelope, type Http2Connection, lastEnvelope, openHttp2 } from '../support/wire.ts';

const submitPath = '/headlessforms.v1.SubmissionsService/CreateSubmission';
const checkPath = '/headlessforms.v1.SubmissionsService/CheckAnswers';
const exportPath = '/headlessforms.v1.SubmissionsService/ExportSubmissions';
const uploadPath = '/headlessforms.v1.UploadsService/UploadFile';
const watchPath = '/headlessforms.v1.SubmissionsService/WatchSubmissions';
const listenPath = '/headlessforms.v1.WebhooksService/Listen';
const streams = [exportPath, uploadPath, watchPath, listenPath];
const broken = Buffer.from([0x0a, 0xff]);
const deep = Buffer.alloc(5_000, Buffer.from([0x8b, 6]));
const cutGzip = gzipSync('A text that is long enough to be cut off').subarray(0, 20);

let service: TestService;
let connection: Http2Connection;
let formId: string;

beforeAll(async () => {
  service = await startService();
  connection = openHttp2(service.grpcUrl);
  formId = (await service.givenPublishedForm()).id;
});
afterAll(async () => {
  connection[Symbol.dispose]();
  await service[Symbol.asyncDispose]();
});

describe('a mistake of the caller', () => {
  const cases: [string, string, Uint8Array, Record<string, string>, Code, Reason][] = [
    ['broken bytes', submitPath, broken, {}, Code.InvalidArgument, Reason.BAD_REQUEST],
    ['groups in groups', submitPath, deep, {}, Code.InvalidArgument, Reason.BAD_REQUEST],
    ['broken bytes to a stream', exportPath, broken, {}, Code.InvalidArgument, Reason.BAD_REQUEST],
    ['broken bytes in a stream', uploadPath, broken, {}, Code.InvalidArgument, Reason.BAD_REQUEST],
    ['groups in groups to a stream', exportPath, deep, {}, Code.InvalidArgument, Reason.BAD_REQUEST],
    ['groups in groups in a stream', uploadPath, deep, {}, Code.InvalidArgument, Reason.BAD_REQUEST],
    ['half a gzip', submitPath, cutGzip, { encoding: 'gzip' }, Code.InvalidArgument, Reason.BAD_REQUEST],
    [
      'half a gzip to a stream',
      exportPath,
      cutGzip,
      { encoding: 'gzip' },
      Code.InvalidArgument,
      Reason.BAD_REQUEST,
    ],
    [
      'half a gzip in a stream',
      uploadPath,
      cutGzip,
      { encoding: 'gzip' },
      Code.InvalidArgument,
      Reason.BAD_REQUEST,
    ],
    ['no such encoding', submitPath, broken, { encoding: 'br' }, Code.Unimplemented, Reason.MEDIA_TYPE],
    ['no time-out', submitPath, broken, { timeout: 'soon' }, Code.InvalidArgument, Reason.BAD_REQUEST],
    ['too much', submitPath, Buffer.alloc(300_000), {}, Code.ResourceExhausted, Reason.TOO_LARGE],
    ['no such method', `${submitPath}s`, broken, {}, Code.Unimplemented, Reason.NOT_FOUND],
  ];
  const all = cases.flatMap(([what, path, ...rest]) =>
    typesFor(path).map((type) => [what, type, path, ...rest] as const),
  );

  it.each(all)('is never called one of the service, and says so in a detail: %s as %s', async (...args) => {
    const [, type, path, message, { encoding, timeout }, code, reason] = args;
    const before = service.logged.length;
    const names = headerNames[type];
    const headers = {
      'content-type': type,
      authorization: `Bearer ${service.key}`,
      ...(encoding && { [names.encoding]: encoding }),
      ...(timeout && { [names.timeout]: timeout }),
    };

    const said = await call(path, inBody(type, message, encoding === 'gzip' ? 1 : 0), headers);

    expect(said).toEqual({ code, reason });
    expect(service.logged.slice(before)).toEqual([]);
  });

  it.each([
    ['no base64', 'encoding=json&base64=1&message=!!!'],
    ['no gzip', 'encoding=json&base64=1&compression=gzip&message=e30'],
    ['no JSON', 'encoding=json&message=%7B'],
    ['no message', 'encoding=proto&message=%0A%FF'],
  ])('in a URL is none of the service either: %s', async (_, query) => {
    const reply = await fetch(`${service.url}${checkPath}?${query}`);

    expect(reply.status).toBe(400);
    expect(await reply.json()).toMatchObject({
      code: 'invalid_argument',
      details: [{ debug: {} }, { debug: {} }],
    });
  });

  it('that is no JSON has a detail, too', async () => {
    const said = await call(submitPath, Buffer.from('{'), { 'content-type': 'application/json' });

    expect(said).toEqual({ code: Code.InvalidArgument, reason: Reason.BAD_REQUEST });
  });
});

describe('a deadline', () => {
  const known = [watchPath, listenPath, '/grpc.health.v1.Health/Watch'];

  it.each(known)('that passes is the failure of a stream that goes on: %s', async (path) => {
    const before = service.logged.length;

    const said = await Promise.all(typesFor(path).map((type) => withDeadline(path, type, 200)));

    expect(said).toEqual(said.map(() => ({ code: Code.DeadlineExceeded, reason: Reason.UNAVAILABLE })));
    expect(service.logged.slice(before)).toEqual([]);
  });

  it.each([submitPath, exportPath])('of days is no mistake: %s', async (path) => {
    const said = await Promise.all(typesFor(path).map((type) => withDeadline(path, type, 9_999_999_000)));

    // The message names no form.
    expect(said).toEqual(said.map(() => ({ code: Code.NotFound, reason: Reason.NOT_FOUND })));
  });

  function withDeadline(path: string, type: MediaType, ms: number) {
    const { timeout } = headerNames[type];
    return call(path, inBody(type, new Uint8Array()), {
      'content-type': type,
      authorization: `Bearer ${service.key}`,
      [timeout]:
        timeout === 'grpc-timeout' && ms > 1e7
          ? `${ms / 1000}S`
          : `${ms}${timeout === 'grpc-timeout' ? 'm' : ''}`,
    });
  }
});

describe('the violations of a call by gRPC', () => {
  it.each([40, 500])(
    'fit into its trailers, and the last one says how many more there are: %i',
    async (count) => {
      const answers = Object.fromEntries(
        Array.from({ length: count }, (_, index) => [`${'ü'.repeat(200)}${index}`, 1]),
      );

      const { trailers } = await connection.call(submitPath, [envelope(submission({ formId, answers }))], {
        'content-type': 'application/grpc',
      });
      const error = await service
        .client(SubmissionsService, 'grpc', null)
        .createSubmission({ formId, answers })
        .catch((thrown: unknown) => ConnectError.from(thrown));
      const violations = error instanceof ConnectError ? error.findDetails(FailureSchema)[0]?.violations : [];

      expect(trailers['grpc-status']).toBe(String(Code.InvalidArgument));
      expect(JSON.stringify(trailers).length).toBeLessThan(8_000);
      expect(String(trailers['grpc-status-details-bin']).length).toBeLessThanOrEqual(6_144);
      expect(violations?.at(-1)?.message).toMatch(/^There are \d+ more problems$/);
      const more = Number(/\d+/.exec(violations?.at(-1)?.message ?? '')?.[0]);
      expect((violations?.length ?? 0) - 1 + more).toBe(Math.min(count + 1, 100));
    },
  );
});

describe('the standard details of a failure', () => {
  it.each(['grpc', 'grpc-web', 'connect'] as const)('say the same as ours by %s', async (protocol) => {
    const client = service.client(SubmissionsService, protocol, null);

    const refused = await refusal(client.createSubmission({ formId, answers: { email: 'x', age: 1 } }));
    const lacking = await refusal(
      service
        .client(SubmissionsService, protocol, await service.givenKey(['forms:read']))
        .deleteSubmission({ submissionId: 'sub_1' }),
    );

    const [ours] = refused.findDetails(FailureSchema);
    const [listed] = refused.findDetails(BadRequestSchema);
    expect(
      listed?.fieldViolations.map(({ field, description, reason }) => [field, description, reason]),
    ).toEqual(ours?.violations.map(({ path, message, code }) => [path, message, ViolationCode[code]]));
    expect(listed?.fieldViolations).toHaveLength(2);
    expect(refused.findDetails(ErrorInfoSchema)).toMatchObject([
      { reason: 'INVALID', domain: 'headlessforms.v1', metadata: {} },
    ]);
    expect(lacking.findDetails(ErrorInfoSchema)).toMatchObject([
      { reason: 'INSUFFICIENT_SCOPE', metadata: { required_scope: 'submissions:delete' } },
    ]);
    expect([lacking.findDetails(BadRequestSchema), lacking.findDetails(RetryInfoSchema)]).toEqual([[], []]);
  });

  it('say when to try again', () => {
    const error = trailerError(failed(Reason.RATE_LIMITED, 'Too many', { retryAfter: 7 }));

    expect(error.findDetails(RetryInfoSchema)).toMatchObject([{ retryDelay: { seconds: 7n } }]);
    expect(error.findDetails(FailureSchema)).toMatchObject([
      { retryable: true, retryAfter: { seconds: 7n }, nextCall: NextCall.SAME },
    ]);
  });

  it('leave room for ours where gRPC has little', () => {
    const violations = Array.from({ length: 45 }, (_, index) => ({
      path: `answers.${'a'.repeat(40)}${index}`,
      code: 'custom' as const,
      message: 'No',
    }));

    const error = trailerError(invalid(violations));

    expect(error.findDetails(FailureSchema)[0]?.violations).toHaveLength(45);
    const listed = error.findDetails(BadRequestSchema)[0]?.fieldViolations ?? [];
    expect(listed.length).toBeGreaterThan(10);
    expect(listed.at(-1)?.description).toBe(`There are ${45 - listed.length + 1} more problems`);
  });
});

async function refusal(call: Promise<unknown>): Promise<ConnectError> {
  const error = await call.catch((thrown: unknown) => thrown);
  if (!(error instanceof ConnectError)) throw new Error('The call was expected to fail');
  return error;
}

/** The code and the reason of a refused call, however its protocol says them. */
async function call(path: string, body: Uint8Array, headers: Record<string, string>) {
  const url = headers['content-type'] === 'application/grpc' ? undefined : service.url + path;
  if (url === undefined) {
    const reply = await connection.call(path, [body], headers);
    return inTrailers({ ...reply.headers, ...reply.trailers });
  }
  const reply = await fetch(url, { method: 'POST', headers, body: Buffer.from(body) });
  const said = Buffer.from(await reply.arrayBuffer());
  if (headers['content-type'] === 'application/grpc-web+proto') {
    const lines = said.length === 0 ? [] : lastEnvelope(said).toString().split('\r\n');
    return inTrailers({
      ...Object.fromEntries(reply.headers),
      ...Object.fromEntries(lines.flatMap((line) => (line === '' ? [] : [line.split(': ', 2)]))),
    });
  }
  const isStream = reply.headers.get('content-type')?.startsWith('application/connect+') === true;
  const json = JSON.parse((isStream ? lastEnvelope(said) : said).toString());
  const { code, details } = isStream ? json.error : json;
  const detail = Buffer.from(details?.[0]?.value ?? '', 'base64');
  return { code: codes[code], reason: fromBinary(FailureSchema, detail).reason };
}

/** The media types of a path's calls: gRPC's, gRPC-Web's and Connect's. */
function typesFor(path: string): MediaType[] {
  const isStream = streams.includes(path) || path.endsWith('/Watch');
  return [
    'application/grpc',
    'application/grpc-web+proto',
    isStream ? 'application/connect+proto' : 'application/proto',
  ];
}

function inBody(type: MediaType, message: Uint8Array, flags = 0): Uint8Array {
  return type === 'application/proto' ? message : envelope(message, flags);
}

const grpcNames = { encoding: 'grpc-encoding', timeout: 'grpc-timeout' };

const headerNames = {
  'application/grpc': grpcNames,
  'application/grpc-web+proto': grpcNames,
  'application/proto': { encoding: 'content-encoding', timeout: 'connect-timeout-ms' },
  'application/connect+proto': { encoding: 'connect-content-encoding', timeout: 'connect-timeout-ms' },
};

type MediaType = keyof typeof headerNames;

function inTrailers(trailers: Record<string, string>) {
  const error = findTrailerError(new Headers(trailers));
  return { code: error?.code, reason: error?.findDetails(FailureSchema)[0]?.reason };
}

const codes: Record<string, Code> = {
  invalid_argument: Code.InvalidArgument,
  not_found: Code.NotFound,
  unimplemented: Code.Unimplemented,
  resource_exhausted: Code.ResourceExhausted,
  internal: Code.Internal,
  deadline_exceeded: Code.DeadlineExceeded,
};

function submission(init: MessageInitShape<typeof CreateSubmissionRequestSchema>): Uint8Array {
  return toBinary(CreateSubmissionRequestSchema, create(CreateSubmissionRequestSchema, init));
}
