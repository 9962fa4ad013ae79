import { Code, createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { SubmissionsService } from '../../gen/headlessforms/v1/submissions_pb.js';
import { failureOf } from '../support/failures.ts';
import { contactForm, protocols, startService, type TestService } from '../support/server.ts';
import { until } from '../support/until.ts';
import { type HeldSocket, openSocket } from '../support/wire.ts';

const MIB = 1024 * 1024;
const uploadPath = '/headlessforms.v1.UploadsService/CreateUpload';

describe('while bodies of callers without a key take all the memory there is for one address', () => {
  const answers = { email: 'ann@example.com' };
  let service: TestService;
  let formId: string;
  let held: HeldSocket[];

  beforeAll(async () => {
    service = await startService();
    formId = (
      await service.givenPublishedForm({ fields: [...contactForm.fields, { id: 'cv', type: 'file' }] })
    ).id;
    held = [];
  });
  // What has not gone on for twenty seconds is ended, and its memory free again.
  beforeEach(fill);
  afterAll(() => service[Symbol.asyncDispose]());

  it('REST answers 503 and when to try again', async () => {
    const refused = await submitByRest(null);

    expect(refused.json.error).toMatchObject({ code: 'internal_error', reason: 'unavailable' });
    expect(refused.headers.get('retry-after')).toBe('1');
  });

  it('REST and MCP take the bodies of callers with a key', async () => {
    const submitted = await submitByRest(service.key);
    const put = await service.post(
      `/api/forms/${formId}/uploads?field=cv&filename=a`,
      Buffer.alloc(20_000, 'a'),
      {
        headers: { 'content-type': 'application/octet-stream' },
      },
    );
    const message = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: { note: 'x'.repeat(20_000) } };
    const asked = await fetch(`${service.url}/mcp`, {
      method: 'POST',
      body: JSON.stringify(message),
      headers: {
        authorization: `Bearer ${service.key}`,
        accept: 'application/json, text/event-stream',
        'content-type': 'application/json',
      },
    });

    expect([submitted.status, put.status, put.json.upload.size, asked.status]).toEqual([
      201, 201, 20_000, 200,
    ]);
  });

  it.each(protocols)('a call by %s fails with UNAVAILABLE, but not with a key', async (protocol) => {
    const call = { formId, answers: { ...answers, message: 'x'.repeat(10_000) } };
    const submit = (key: string | null) =>
      createClient(SubmissionsService, service.transport(protocol, key)).createSubmission(call);

    const failure = await failureOf(submit(null));
    const { submissionId } = await submit(service.key);

    expect([failure.code, failure.reason]).toEqual([Code.Unavailable, 'UNAVAILABLE']);
    expect(failure.header.get('retry-after')).toBe('1');
    expect(submissionId).toMatch(/^sub_/);
  });

  it('a call by gRPC on the port of HTTP fails with UNAVAILABLE, too', async () => {
    const transport = createGrpcTransport({ baseUrl: service.url });
    const call = { formId, answers: { ...answers, message: 'x'.repeat(10_000) } };

    const failure = await failureOf(createClient(SubmissionsService, transport).createSubmission(call));

    expect([failure.code, failure.reason]).toEqual([Code.Unavailable, 'UNAVAILABLE']);
  });

  it('what has no body is answered, and all else once they are gone', async () => {
    expect((await service.get('/health')).status).toBe(200);

    for (const socket of held) socket[Symbol.dispose]();

    await until(async () => (await submitByRest(null)).status === 201);
  });

  function submitByRest(key: string | null) {
    const body = { answers: { ...answers, message: 'x'.repeat(10_000) } };
    return service.post(`/api/forms/${formId}/submissions`, body, { key });
  }

  async function fill(): Promise<void> {
    const isFull = async () => (await submitByRest(null)).status === 503;
    if (await isFull()) return;
    for (const bytes of [10 * MIB, MIB]) held.push(await hold(bytes));
    // Those that don't fit any more are refused, and hold nothing.
    await until(async () => {
      for (const bytes of [MIB / 10, 8 * 1024, 1]) held.push(await hold(bytes));
      return isFull();
    });
    held.push(await hold(1));
  }

  /** A call that is never ended, of which that many bytes have been sent. */
  async function hold(bytes: number): Promise<HeldSocket> {
    const connection = await openSocket(service.url);
    const head = `POST ${uploadPath} HTTP/1.1\r\nhost: a\r\ncontent-type: application/proto\r\n`;
    connection.socket.write(`${head}content-length: ${Math.ceil(bytes) + 1}\r\n\r\n`);
    const sent = new Promise((written) => connection.socket.write(Buffer.alloc(bytes), written));
    await Promise.race([sent, connection.ended]);
    return connection;
  }
});
