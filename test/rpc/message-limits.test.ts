import { once } from 'node:events';
import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { create, type JsonValue, toBinary, toJsonString } from '@bufbuild/protobuf';
import { Code, createClient } from '@connectrpc/connect';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { GetFormRequestSchema } from '../../gen/forms/v1/forms_pb.js';
import { CreateSubmissionRequestSchema } from '../../gen/forms/v1/submissions_pb.js';
import { UploadsService } from '../../gen/forms/v1/uploads_pb.js';
import { startService, type TestService } from '../support/server.ts';
import { envelope, type Http2Connection, openHttp2 } from '../support/wire.ts';

const submitPath = '/forms.v1.SubmissionsService/CreateSubmission';
const getFormPath = '/forms.v1.FormsService/GetForm';
const MAX_BYTES = 256 * 1024;
const MAX_VALUES = 10_000;

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

/** Sends one message to CreateSubmission in a protocol, and tells the code of the answer; 0 is success. */
const protocols: [string, (message: MessageBytes) => Promise<number>][] = [
  ['Connect', ({ bytes, json, gzip }) => connectCode(json ? 'json' : 'proto', bytes, gzip)],
  ['gRPC', ({ bytes, json, gzip }) => grpcCode('grpc', json, bytes, gzip)],
  ['gRPC-Web', ({ bytes, json, gzip }) => grpcCode('grpc-web', json, bytes, gzip)],
];

describe.each(protocols)('a message by %s', (_, codeOf) => {
  const forms = [
    { json: false, gzip: false },
    { json: false, gzip: true },
    { json: true, gzip: false },
    { json: true, gzip: true },
  ];

  it.each(forms)('may hold 10,000 values, and no more: %o', async (form) => {
    const wrongAnswers = Code.InvalidArgument;
    // The answers, the list, and its elements are values themselves.
    const most = submissionWith(Array(MAX_VALUES / 2).fill([]));

    expect(await codeOf(encode(most, form))).toBe(wrongAnswers);
    expect(await codeOf(encode(submissionWith(Array(MAX_VALUES + 1).fill(0)), form))).toBe(
      Code.ResourceExhausted,
    );
    expect(await codeOf(encode(submissionWith(Array(MAX_VALUES + 1).fill([])), form))).toBe(
      Code.ResourceExhausted,
    );
  });

  it('may have 256 KiB, decompressed too', async () => {
    const large = submissionWith('x'.repeat(MAX_BYTES));
    const fits = submissionWith('x'.repeat(MAX_BYTES - 1000));

    expect(await codeOf(encode(large, { json: false, gzip: false }))).toBe(Code.ResourceExhausted);
    expect(await codeOf(encode(large, { json: false, gzip: true }))).toBe(Code.ResourceExhausted);
    expect(await codeOf(encode(fits, { json: false, gzip: true }))).toBe(Code.InvalidArgument);
  });
});

describe('a message in a URL', () => {
  const get = (message: Uint8Array, more: string) =>
    fetch(
      `${service.url}${getFormPath}?encoding=json&base64=1&message=${Buffer.from(message).toString('base64url')}${more}`,
      { headers: { authorization: `Bearer ${service.key}` } },
    );

  it('is bounded once it is decompressed', async () => {
    const bomb = gzipSync(`{"formId":"${'x'.repeat(MAX_BYTES)}"}`);
    const flood = gzipSync(`{"formId":[${'[],'.repeat(MAX_VALUES)}1]}`);

    expect((await get(bomb, '&compression=gzip')).status).toBe(429);
    expect((await get(flood, '&compression=gzip')).status).toBe(429);
    expect((await get(gzipSync(`{"formId":"${formId}"}`), '&compression=gzip')).status).toBe(200);
  });

  it('is not looked into before the caller is known', async () => {
    const flood = gzipSync(`{"formId":[${'[],'.repeat(MAX_VALUES)}1]}`);
    const path = `${getFormPath}?encoding=json&base64=1&compression=gzip&message=${flood.toString('base64url')}`;

    const reply = await fetch(service.url + path);

    expect(reply.status).toBe(401);
    expect(await reply.json()).toMatchObject({ code: 'unauthenticated' });
  });
});

describe('a call', () => {
  it('is refused in brotli, which no limit holds by', async () => {
    const body = brotliCompressSync(toBinary(CreateSubmissionRequestSchema, submissionWith('x')));

    const reply = await connection.call(submitPath, [body], {
      'content-type': 'application/proto',
      'content-encoding': 'br',
    });

    expect(JSON.parse(reply.body.toString())).toMatchObject({ code: 'unimplemented' });
  });

  it.each([
    ['Connect', 'application/json', '{'],
    ['gRPC-Web', 'application/grpc-web+proto', Buffer.from([0])],
  ])('without a key is refused by %s before its message has come', async (_, type, beginning) => {
    const call = request(service.url + getFormPath, { method: 'POST', headers: { 'content-type': type } });
    call.write(beginning);

    const [reply] = await once(call, 'response');

    const said = type.endsWith('json') ? await text(reply) : String(reply.headers['grpc-status']);
    expect(said).toMatch(type.endsWith('json') ? /unauthenticated/ : /undefined|16/);
    call.destroy();
  });

  it('without a key is refused by gRPC before its message has come', async () => {
    const { trailers } = await connection.call(
      getFormPath,
      [Buffer.from([0])],
      { 'content-type': 'application/grpc' },
      { ended: false },
    );

    expect(Number(trailers['grpc-status'])).toBe(Code.Unauthenticated);
  });

  it('that announces too much is refused before any of it has come', async () => {
    const headers = { 'content-type': 'application/proto', 'content-length': String(MAX_BYTES + 6) };
    const call = request(service.url + submitPath, { method: 'POST', headers });
    call.flushHeaders();

    const [reply] = await once(call, 'response');

    expect([reply.statusCode, JSON.parse(await text(reply)).code]).toEqual([429, 'resource_exhausted']);
    call.destroy();
  });

  it('of an upload may have the size of the largest file', async () => {
    const target = { case: 'formId', value: formId } as const;
    const content = new Uint8Array(10 * 1024 * 1024);

    const refusal = await createClient(UploadsService, service.transport('grpc'))
      .createUpload({ target, fieldId: 'cv', filename: 'cv.bin', content })
      .catch((error: { code: Code }) => error);

    // The form has no such field: the message was read.
    expect(refusal).toMatchObject({ code: Code.InvalidArgument });
  });

  it('reads what it was asked for, as before', async () => {
    const message = toBinary(GetFormRequestSchema, create(GetFormRequestSchema, { formId }));
    const headers = { 'content-type': 'application/grpc', authorization: `Bearer ${service.key}` };

    const { trailers } = await connection.call(getFormPath, [envelope(message)], headers);

    expect(trailers['grpc-status']).toBe('0');
  });
});

function submissionWith(value: JsonValue) {
  return create(CreateSubmissionRequestSchema, { formId, answers: { unknown: value } });
}

function encode(message: ReturnType<typeof submissionWith>, { json, gzip }: Encoding): MessageBytes {
  const plain = json
    ? new TextEncoder().encode(toJsonString(CreateSubmissionRequestSchema, message))
    : toBinary(CreateSubmissionRequestSchema, message);
  return { json, gzip, bytes: gzip ? gzipSync(plain) : plain };
}

async function connectCode(type: string, bytes: Uint8Array, gzip: boolean): Promise<number> {
  const reply = await fetch(service.url + submitPath, {
    method: 'POST',
    headers: { 'content-type': `application/${type}`, ...(gzip && { 'content-encoding': 'gzip' }) },
    body: Buffer.from(bytes),
  });
  const said = await reply.text();
  return codes[/"code":"(\w+)"/.exec(said)?.[1] ?? ''] ?? 0;
}

async function grpcCode(protocol: string, json: boolean, bytes: Uint8Array, gzip: boolean): Promise<number> {
  const { trailers, body } = await connection.call(submitPath, [envelope(bytes, gzip ? 1 : 0)], {
    'content-type': `application/${protocol}+${json ? 'json' : 'proto'}`,
    ...(gzip && { 'grpc-encoding': 'gzip' }),
  });
  return Number(trailers['grpc-status'] ?? /grpc-status: (\d+)/.exec(body.toString())?.[1]);
}

const codes: Record<string, Code> = {
  invalid_argument: Code.InvalidArgument,
  resource_exhausted: Code.ResourceExhausted,
};

type Encoding = { json: boolean; gzip: boolean };
type MessageBytes = Encoding & { bytes: Uint8Array };
