import { once } from 'node:events';
import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import {
  create,
  type DescMessage,
  type JsonValue,
  type MessageShape,
  toBinary,
  toJsonString,
} from '@bufbuild/protobuf';
import { Code, createClient } from '@connectrpc/connect';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FormFieldType } from '../../gen/headlessforms/v1/definition_pb.js';
import { CreateFormRequestSchema, GetFormRequestSchema } from '../../gen/headlessforms/v1/forms_pb.js';
import { CreateSessionRequestSchema } from '../../gen/headlessforms/v1/sessions_pb.js';
import { CreateSubmissionRequestSchema } from '../../gen/headlessforms/v1/submissions_pb.js';
import { UploadsService } from '../../gen/headlessforms/v1/uploads_pb.js';
import { contactForm, startService, type TestService } from '../support/server.ts';
import { envelope, type Http2Connection, openHttp2 } from '../support/wire.ts';

const submitPath = '/headlessforms.v1.SubmissionsService/CreateSubmission';
const getFormPath = '/headlessforms.v1.FormsService/GetForm';
const createFormPath = '/headlessforms.v1.FormsService/CreateForm';
const createSessionPath = '/headlessforms.v1.SessionsService/CreateSession';
const MAX_BYTES = 256 * 1024;
const KEYLESS_BYTES = 64 * 1024;
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

/**
 * Sends one message, to CreateSubmission without a key, in a protocol, and tells the code of the answer; 0 is success.
 */
const protocols: [string, (message: MessageBytes, to?: Target) => Promise<number>][] = [
  ['Connect', ({ bytes, json, gzip }, to) => connectCode(json ? 'json' : 'proto', bytes, gzip, to)],
  ['gRPC', ({ bytes, json, gzip }, to) => grpcCode('grpc', json, bytes, gzip, to)],
  ['gRPC-Web', ({ bytes, json, gzip }, to) => grpcCode('grpc-web', json, bytes, gzip, to)],
];

/** As a message can be sent. */
const encodings = [
  { json: false, gzip: false },
  { json: false, gzip: true },
  { json: true, gzip: false },
  { json: true, gzip: true },
];

describe.each(protocols)('a message by %s', (_, codeOf) => {
  it.each(encodings)('may hold 10,000 values, and no more: %o', async (form) => {
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

  it.each(encodings)('may nest 32 deep, as JSON by REST may, and no deeper: %o', async (encoding) => {
    const to = { path: createSessionPath, key: service.key };
    const codeAt = (depth: number) =>
      codeOf(encodeAs(CreateSessionRequestSchema, sessionWith(nested(depth - 2)), encoding), to);
    const byRest = await service.post(`/v1/forms/${formId}/sessions`, { metadata: { a: nested(31) } });

    expect(await codeAt(32)).toBe(0);
    expect(await codeAt(33)).toBe(Code.InvalidArgument);
    expect(await codeAt(90)).toBe(Code.InvalidArgument);
    expect(byRest.status).toBe(422);
  });

  it.each(encodings)('of 64 KiB is the most for a form that is made without a key: %o', async (encoding) => {
    const given = (description: number) =>
      encodeAs(CreateFormRequestSchema, formWith('x'.repeat(description)), encoding);
    const codeFor = (size: number, key?: string) => codeOf(given(size), { path: createFormPath, key });

    // A description has 2,000 characters: the definition was read.
    expect(await codeFor(KEYLESS_BYTES - 1000)).toBe(Code.InvalidArgument);
    expect(await codeFor(KEYLESS_BYTES)).toBe(Code.ResourceExhausted);
    expect(await codeFor(KEYLESS_BYTES, service.key)).toBe(Code.InvalidArgument);
  });

  it('by REST has the same bound without a key', async () => {
    const definition = { ...contactForm, description: 'x'.repeat(KEYLESS_BYTES) };
    const statusFor = async (key: string | null) =>
      (await service.post('/api/forms/create', definition, { key })).status;

    expect(await statusFor(null)).toBe(413);
    expect(await statusFor(service.key)).toBe(422);
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

  it('is bounded in depth where it is not compressed, too', async () => {
    const path = '/headlessforms.v1.SubmissionsService/CheckAnswers';
    const check = async (answers: string) => {
      const message = encodeURIComponent(`{"formId":"${formId}","answers":${answers}}`);
      return (await fetch(`${service.url}${path}?encoding=json&message=${message}`)).json();
    };

    expect(await check('{}')).toMatchObject({ violations: [{ path: 'answers.email' }] });
    expect(await check(`{"a":${JSON.stringify(nested(31))}}`)).toMatchObject({ code: 'invalid_argument' });
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

  it('of an upload in JSON may have 2 MiB', async () => {
    const upload = (bytes: number) =>
      connectCode(
        'json',
        Buffer.from(`{"formId":"${formId}","fieldId":"cv","content":"${'A'.repeat(bytes)}"}`),
        false,
        { path: '/headlessforms.v1.UploadsService/CreateUpload' },
      );

    expect(await upload(2_000_000)).toBe(Code.InvalidArgument);
    expect(await upload(2 * 1024 * 1024)).toBe(Code.ResourceExhausted);
  });

  it('that only says it is in gzip is not read', async () => {
    const bytes = gzipSync('{}').subarray(0, 12);

    expect(await connectCode('json', bytes, true)).toBe(Code.InvalidArgument);
    expect(await grpcCode('grpc', false, bytes, true)).toBe(Code.InvalidArgument);
    expect(await grpcCode('grpc-web', false, bytes, true)).toBe(Code.InvalidArgument);
  });

  it('may hold unknown groups, nested as they like', async () => {
    const message = toBinary(CreateSubmissionRequestSchema, submissionWith('x'));
    const groups = Buffer.alloc(60_000, Buffer.from([0x8b, 0x06]));

    expect(await connectCode('proto', Buffer.concat([message, groups]), false)).toBe(Code.InvalidArgument);
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

function sessionWith(value: JsonValue) {
  return create(CreateSessionRequestSchema, {
    subject: { case: 'formId', value: formId },
    metadata: { a: value },
  });
}

function formWith(description: string) {
  const fields = [{ id: 'email', type: FormFieldType.EMAIL }];
  return create(CreateFormRequestSchema, { definition: { name: 'Test', slug: 'test', description, fields } });
}

/** A list in a list, `depth` deep. */
function nested(depth: number): JsonValue {
  return JSON.parse('['.repeat(depth) + ']'.repeat(depth));
}

function encode(message: ReturnType<typeof submissionWith>, encoding: Encoding): MessageBytes {
  return encodeAs(CreateSubmissionRequestSchema, message, encoding);
}

function encodeAs<S extends DescMessage>(
  schema: S,
  message: MessageShape<S>,
  { json, gzip }: Encoding,
): MessageBytes {
  const plain = json ? new TextEncoder().encode(toJsonString(schema, message)) : toBinary(schema, message);
  return { json, gzip, bytes: gzip ? gzipSync(plain) : plain };
}

async function connectCode(
  type: string,
  bytes: Uint8Array,
  gzip: boolean,
  { path, key }: Target = { path: submitPath },
): Promise<number> {
  const reply = await fetch(service.url + path, {
    method: 'POST',
    headers: {
      'content-type': `application/${type}`,
      ...(gzip && { 'content-encoding': 'gzip' }),
      ...(key && { authorization: `Bearer ${key}` }),
    },
    body: Buffer.from(bytes),
  });
  const said = await reply.text();
  return codes[/"code":"(\w+)"/.exec(said)?.[1] ?? ''] ?? 0;
}

async function grpcCode(
  protocol: string,
  json: boolean,
  bytes: Uint8Array,
  gzip: boolean,
  { path, key }: Target = { path: submitPath },
): Promise<number> {
  const { trailers, body } = await connection.call(path, [envelope(bytes, gzip ? 1 : 0)], {
    'content-type': `application/${protocol}+${json ? 'json' : 'proto'}`,
    ...(gzip && { 'grpc-encoding': 'gzip' }),
    ...(key && { authorization: `Bearer ${key}` }),
  });
  return Number(trailers['grpc-status'] ?? /grpc-status: (\d+)/.exec(body.toString())?.[1]);
}

const codes: Record<string, Code> = {
  invalid_argument: Code.InvalidArgument,
  resource_exhausted: Code.ResourceExhausted,
};

type Encoding = { json: boolean; gzip: boolean };
type Target = { path: string; key?: string | undefined };
type MessageBytes = Encoding & { bytes: Uint8Array };
