import { readdirSync, readlinkSync } from 'node:fs';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { UploadsService } from '../../gen/headlessforms/v1/uploads_pb.js';
import { PIECE_BYTES } from '../../src/services/uploads/upload-store.ts';
import { fileOf } from '../support/files.ts';
import { protocols, startService, type TestService } from '../support/server.ts';
import { until } from '../support/until.ts';

const content = Buffer.alloc(9 * 1024 * 1024, 'a text ');

describe('the limit of uploads', () => {
  it('counts all files of a post as one, and the uploads of a client to every form', async () => {
    await using service = await startService({ env: { RATE_LIMIT: 'on' } });
    const fields = ['cv', 'letter'].map((id) => ({ id, type: 'file' }));
    const [form, other] = [
      await service.givenPublishedForm({ fields }),
      await service.givenPublishedForm({ fields }),
    ];
    const post = new FormData();
    for (const { id } of fields) post.append(id, new Blob([`The ${id}`]), `${id}.txt`);
    const headers = { 'content-type': 'application/octet-stream' };

    const posted = await fetch(`${service.url}/api/forms/${form.id}/submissions`, {
      method: 'POST',
      body: post,
      headers: { accept: 'application/json' },
    });
    const path = `/api/forms/${other.id}/uploads?field=cv&filename=cv.txt`;
    const uploaded = await service.post(path, Buffer.from('A text'), { key: null, headers });

    expect([posted.status, uploaded.status]).toEqual([201, 201]);
    expect(uploaded.headers.get('ratelimit')).toMatch(/^"upload";r=58;/);
  });
});

describe('a file by another name of its type', () => {
  const jpeg = Buffer.from('\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01', 'latin1');
  const table = Buffer.from('Gr\xf6\xdfe;1\r\n', 'latin1');

  it.each([
    ['.jpg', 'photo.jpeg', jpeg, 'image/jpeg'],
    ['image/jpg', 'photo', jpeg, 'image/jpeg'],
    ['text/csv', 'sizes.csv', table, 'text/csv'],
  ])('is taken for %s at every door: %s', async (accept, filename, bytes, type) => {
    await using service = await startService();
    const form = await service.givenPublishedForm({
      fields: [{ id: 'file', type: 'file', accept: [accept] }],
    });
    const raw = { key: null, headers: { 'content-type': 'application/octet-stream' } };
    const post = () => {
      const body = new FormData();
      body.append('file', new Blob([Uint8Array.from(bytes)]), filename);
      return body;
    };
    const page = await (await fetch(`${service.url}/f/${form.id}`)).text();
    const onPage = post();
    for (const [, name = '', value = ''] of page.matchAll(/type="hidden" name="(\w+)" value="([^"]*)"/g)) {
      onPage.append(name, value);
    }

    const path = `/api/forms/${form.id}/uploads?field=file&filename=${filename}`;
    const uploaded = await service.post(path, bytes, raw);
    const statuses = await Promise.all([
      fetch(`${service.url}/api/forms/${form.id}/submissions`, { method: 'POST', body: post() }),
      fetch(`${service.url}/f/${form.id}`, { method: 'POST', body: onPage, redirect: 'manual' }),
    ]).then((replies) => replies.map(({ status }) => status));

    expect([uploaded.status, uploaded.json.upload]).toMatchObject([201, { content_type: type }]);
    expect(statuses.filter((status) => status >= 400)).toEqual([]);
    const { submissions } = (await service.get(`/v1/forms/${form.id}/submissions`)).json;
    const files = submissions.map(({ answers }: { answers: { file: unknown } }) => answers.file);
    expect(files).toMatchObject([{ content_type: type, size: bytes.length }, { size: bytes.length }]);
  });
});

describe('a large file', () => {
  let service: TestService;
  let uploadId: string;
  beforeAll(async () => {
    service = await startService();
    const form = await service.givenPublishedForm({ fields: [{ id: 'cv', type: 'file' }] });
    const headers = { 'content-type': 'application/octet-stream' };
    const path = `/api/forms/${form.id}/uploads?field=cv&filename=cv.txt`;
    const { upload } = (await service.post(path, content, { headers })).json;
    uploadId = upload.upload_id;
    const answers = { cv: { upload_id: uploadId } };
    expect((await service.post(`/api/forms/${form.id}/submissions`, { answers })).status).toBe(201);
  });
  afterAll(() => service[Symbol.asyncDispose]());

  it.each(protocols)('comes in small pieces by %s', async (protocol) => {
    const client = service.client(UploadsService, protocol);

    const file = await fileOf(client.getUpload({ uploadId }));

    expect(file.content.equals(content)).toBe(true);
    expect(file.upload).toMatchObject({ id: uploadId, size: content.length, filename: 'cv.txt' });
    expect(Math.max(...file.sizes)).toBeLessThanOrEqual(PIECE_BYTES);
  });

  it('comes whole by REST', async () => {
    const headers = { authorization: `Bearer ${service.key}` };

    const reply = await fetch(`${service.url}/v1/uploads/${uploadId}`, { headers });

    expect(reply.headers.get('content-length')).toBe(String(content.length));
    expect(reply.headers.get('content-disposition')).toContain('cv.txt');
    expect(Buffer.from(await reply.arrayBuffer()).equals(content)).toBe(true);
  });

  it('is closed when nobody reads on', async () => {
    const head = await service.call('HEAD', `/v1/uploads/${uploadId}`);
    const socket = connect(Number(new URL(service.url).port), '127.0.0.1');
    socket.write(
      `GET /v1/uploads/${uploadId} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${service.key}\r\n\r\n`,
    );
    await new Promise((resolve) => socket.once('readable', resolve));
    await until(() => openFiles().length === 1);
    socket.destroy();

    await until(() => openFiles().length === 0);
    expect([head.status, head.headers.get('content-length')]).toEqual([200, String(content.length)]);
  });

  /** The files of this process that hold the upload. */
  function openFiles(): string[] {
    return readdirSync('/proc/self/fd').filter((descriptor) => {
      try {
        return readlinkSync(`/proc/self/fd/${descriptor}`).endsWith(uploadId);
      } catch {
        return false;
      }
    });
  }
});
