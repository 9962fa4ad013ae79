import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HostedService } from '../../gen/headlessforms/internal/v1/hosted_pb.js';
import { FormsService } from '../../gen/headlessforms/v1/forms_pb.js';
import { MailService } from '../../gen/headlessforms/v1/mail_pb.js';
import { OwnersService } from '../../gen/headlessforms/v1/owners_pb.js';
import {
  CreateSubmissionRequestSchema,
  CreateSubmissionResponseSchema,
  ExportFormat,
  ExportSubmissionsRequestSchema,
  ExportSubmissionsResponseSchema,
  SubmissionsService,
} from '../../gen/headlessforms/v1/submissions_pb.js';
import { UploadsService } from '../../gen/headlessforms/v1/uploads_pb.js';
import { WebhooksService } from '../../gen/headlessforms/v1/webhooks_pb.js';
import { startService, type TestService } from '../support/server.ts';
import { envelope } from '../support/wire.ts';

const trusted = 'https://admin.example.com';
const submitPath = '/headlessforms.v1.SubmissionsService/CreateSubmission';

let service: TestService;
let formId: string;

beforeAll(async () => {
  service = await startService({ env: { RPC_ALLOWED_ORIGINS: `${trusted}, https://ops.example.com` } });
  formId = (await service.givenPublishedForm()).id;
});
afterAll(() => service[Symbol.asyncDispose]());

describe('a browser that asks for a page of another origin', () => {
  const all = [
    FormsService,
    HostedService,
    MailService,
    OwnersService,
    SubmissionsService,
    UploadsService,
    WebhooksService,
  ]
    .flatMap(({ typeName, methods }) => methods.map(({ name }) => `/${typeName}/${name}`))
    .concat(
      '/grpc.health.v1.Health/Check',
      '/headlessforms.v1.KeysService/CreateKey',
      '/headlessforms.v1.FormsService/Nothing',
    );

  it('hears that it may make the calls that need no key, and no others', async () => {
    const permitted = [];
    for (const path of all) {
      const { status, headers } = await preflight(path, 'https://site.example');
      if (headers.get('access-control-allow-origin') === null) expect(status).toBeGreaterThanOrEqual(400);
      else permitted.push(path.replace(/^.headlessforms\.(internal\.)?v1\./, ''));
    }

    expect(permitted).toEqual([
      'FormsService/CreateForm',
      'FormsService/GetActivation',
      'FormsService/ActivateForm',
      'FormsService/GetPublicForm',
      'HostedService/GetHosted',
      'HostedService/OpenHostedSession',
      'HostedService/PostHosted',
      'HostedService/SendRespondentCode',
      'HostedService/GiveRespondentCode',
      'HostedService/SubmitPostedForm',
      'HostedService/PreviewForm',
      'SubmissionsService/CreateSubmission',
      'SubmissionsService/CheckAnswers',
      'SubmissionsService/CreateDemoSubmission',
      'UploadsService/CreateUpload',
      'UploadsService/UploadFile',
      'UploadsService/GetLinkedUpload',
    ]);
  });

  it('hears that it may make every call for an origin that RPC_ALLOWED_ORIGINS names', async () => {
    const path = '/headlessforms.v1.WebhooksService/ListWebhooks';

    const { status, headers } = await preflight(path, trusted);
    const reply = await fetch(`${service.url}${path}`, {
      method: 'POST',
      body: '{}',
      headers: { origin: trusted, 'content-type': 'application/json' },
    });

    expect(status).toBe(204);
    expect(headers.get('access-control-allow-origin')).toBe(trusted);
    expect(headers.get('vary')).toContain('Origin');
    expect(headers.get('access-control-allow-headers')?.toLowerCase()).toContain('authorization');
    expect(headers.get('access-control-allow-credentials')).toBeNull();
    expect([reply.status, reply.headers.get('access-control-allow-origin')]).toEqual([401, trusted]);
    expect(reply.headers.get('access-control-expose-headers')).toContain('Grpc-Status-Details-Bin');
  });

  it('reads failures of public calls, those of their message too', async () => {
    const reply = await fetch(`${service.url}${submitPath}`, {
      method: 'POST',
      body: '{',
      headers: { origin: 'null', 'content-type': 'application/json' },
    });

    expect([reply.status, reply.headers.get('access-control-allow-origin')]).toEqual([400, '*']);
  });

  function preflight(path: string, origin: string) {
    const headers = { origin, 'access-control-request-method': 'POST' };
    return fetch(service.url + path, { method: 'OPTIONS', headers });
  }
});

describe('gRPC-Web in text', () => {
  it('is answered in text', async () => {
    const message = create(CreateSubmissionRequestSchema, { formId, answers: { email: 'ann@example.com' } });

    const { type, frames } = await call(submitPath, base64(toBinary(CreateSubmissionRequestSchema, message)));

    expect(type).toBe('application/grpc-web-text+proto');
    const [reply, trailer] = frames;
    expect(fromBinary(CreateSubmissionResponseSchema, reply?.data ?? Buffer.alloc(0)).submissionId).toMatch(
      /^sub_/,
    );
    expect(trailer?.flags).toBe(0x80);
    expect(String(trailer?.data)).toContain('grpc-status: 0');
  });

  it('is streamed in text', async () => {
    const request = create(ExportSubmissionsRequestSchema, { formId, format: ExportFormat.CSV });
    const path = '/headlessforms.v1.SubmissionsService/ExportSubmissions';

    const { frames } = await call(path, base64(toBinary(ExportSubmissionsRequestSchema, request)));

    const pieces = frames.filter(({ flags }) => flags === 0);
    const data = pieces.map((piece) => fromBinary(ExportSubmissionsResponseSchema, piece.data).data);
    expect(Buffer.concat(data).toString()).toContain('ann@example.com');
    expect(frames.at(-1)?.flags).toBe(0x80);
  });

  it.each([
    ['no base64', '!!!!', '3'],
    ['half of it', 'AAA', '3'],
    ['too much', base64(Buffer.alloc(300_000)), '8'],
  ])('is refused as gRPC-Web is: %s', async (_, body, status) => {
    const { frames, grpcStatus } = await call(submitPath, body);

    const inTrailer = /^grpc-status: (\d+)\r$/m.exec(String(frames.at(-1)?.data))?.[1];
    expect(grpcStatus ?? inTrailer).toBe(status);
  });

  it('may be as large as a message in binary', async () => {
    const message = create(CreateSubmissionRequestSchema, {
      formId,
      answers: { message: 'x'.repeat(261_000) },
    });

    const { frames } = await call(submitPath, base64(toBinary(CreateSubmissionRequestSchema, message)));

    expect(String(frames.at(-1)?.data)).toContain('grpc-status: 3');
  });

  async function call(path: string, body: string) {
    const reply = await fetch(service.url + path, {
      method: 'POST',
      body,
      headers: { 'content-type': 'application/grpc-web-text', authorization: `Bearer ${service.key}` },
    });
    const parts = (await reply.text()).match(/[^=]+={0,2}/g) ?? [];
    const bytes = Buffer.concat(parts.map((part) => Buffer.from(part, 'base64')));
    const frames = [];
    for (let at = 0; at < bytes.length; ) {
      const end = at + 5 + bytes.readUInt32BE(at + 1);
      frames.push({ flags: bytes.readUInt8(at), data: bytes.subarray(at + 5, end) });
      at = end;
    }
    return { type: reply.headers.get('content-type'), grpcStatus: reply.headers.get('grpc-status'), frames };
  }

  function base64(message: Uint8Array): string {
    return envelope(message).toString('base64');
  }
});
