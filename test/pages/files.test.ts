import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { UploadsService } from '../../gen/headlessforms/v1/uploads_pb.js';
import { fileLink, readFileLink, signInToken } from '../../src/domain/links.ts';
import { fileOf } from '../support/files.ts';
import { forged } from '../support/forged.ts';
import { givenSignInLink } from '../support/owner.ts';
import { startService, type TestService } from '../support/server.ts';

const secretKey = Buffer.from('ab'.repeat(32), 'hex');
const formerKey = Buffer.from('cd'.repeat(32), 'hex');
const DAY_MS = 24 * 60 * 60 * 1000;
const content = Buffer.alloc(3 * 1024 * 1024, 'a text ');

describe('a signed link to a file', () => {
  let service: TestService;
  beforeAll(async () => {
    const env = { SECRET_KEY_PREVIOUS: 'cd'.repeat(32), LOG_LEVEL: 'info' };
    service = await startService({ env });
  });
  afterAll(() => service?.[Symbol.asyncDispose]());

  /** An answer with a file, to a form of an owner of its own. */
  async function givenFile() {
    const address = `${crypto.randomUUID()}@example.com`;
    const { id: formId, activate_url } = await service.givenDraft({
      fields: [
        { id: 'cv', type: 'file' },
        { id: 'row', type: 'text' },
      ],
    });
    await service.post(activate_url, { email: address });
    await service.database.execute('update forms set owner_confirmed_at = now() where id = $1', [formId]);
    const headers = { 'content-type': 'application/octet-stream' };
    const path = `/api/forms/${formId}/uploads?field=cv&filename=${encodeURIComponent('Lebenslauf „A“.txt')}`;
    const { upload } = (await service.post(path, content, { headers })).json;
    const answers = { cv: { upload_id: upload.upload_id } };
    const submitted = await service.post(`/api/forms/${formId}/submissions`, { answers });
    return { formId, address, uploadId: upload.upload_id, submissionId: submitted.json.submission_id };
  }

  const linkTo = (
    formId: string,
    uploadId: string,
    { key = secretKey, madeAt = Date.now(), ownerEpoch = 0 } = {},
  ) => fileLink({ secretKey: key, baseUrl: service.url, now: madeAt }, { id: formId, ownerEpoch }, uploadId);
  const open = (link: string) => service.get(link, { key: null, headers: { accept: 'text/html' } });

  it('stands in the CSV, and sends the file to be saved, to nobody’s cache', async () => {
    const { formId } = await givenFile();

    const { text } = await service.get(`/v1/forms/${formId}/submissions/export?format=csv`);
    const [link = ''] = /http:\S+\/files\/[\w.-]+/.exec(text) ?? [];
    const reply = await fetch(link);

    expect(Buffer.from(await reply.arrayBuffer()).equals(content)).toBe(true);
    expect(Object.fromEntries(reply.headers)).toMatchObject({
      'cache-control': 'no-store',
      'content-disposition': expect.stringMatching(
        /^attachment; filename=".*"; filename\*=UTF-8''Lebenslauf/,
      ),
      'content-length': String(content.length),
      'content-security-policy': "default-src 'none'; base-uri 'none'; sandbox",
      'content-type': 'text/plain',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
    });
    expect((await fetch(link, { method: 'HEAD' })).headers.get('content-length')).toBe(
      String(content.length),
    );
  });

  it('works for 7 days with the same SECRET_KEY, and then says how to get the file', async () => {
    const { formId, uploadId } = await givenFile();
    const made = (days: number, key = secretKey) =>
      linkTo(formId, uploadId, { key, madeAt: Date.now() - days * DAY_MS });

    const [fresh, former, old] = [
      await open(made(6.9)),
      await open(made(6.9, formerKey)),
      await open(made(7)),
    ];

    expect([fresh.status, former.status, old.status]).toEqual([200, 401, 410]);
    expect(old.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(old.headers.get('content-disposition')).toBeNull();
    expect(old.text).toContain('This link has expired');
    expect(old.text).toContain('<a class="button" href="../owner">Sign in to your forms</a>');
    expect(old.text).not.toContain(uploadId);
  });

  it('is refused once anything in it was changed, or if another key or purpose signed it', async () => {
    const { formId, uploadId } = await givenFile();
    const other = await givenFile();
    const link = linkTo(formId, uploadId);
    const token = link.slice(link.lastIndexOf('/') + 1);
    const [value = '', expiry = '', mac = ''] = token.split('.');
    const [otherValue = ''] = linkTo(other.formId, other.uploadId).split('/files/').at(-1)?.split('.') ?? [];
    const later = (Number.parseInt(expiry, 36) + DAY_MS).toString(36);
    const wrong = [
      [otherValue, expiry, mac],
      [value, later, mac],
      [value, '', mac],
      [value, expiry, forged(mac)],
      [value, expiry, ''],
      [value, expiry, mac, 'x'],
      ['x'],
      [signInToken(secretKey, 'a@example.com', Date.now())],
      [
        linkTo(formId, uploadId, { key: Buffer.alloc(32) })
          .split('/files/')
          .at(-1) ?? '',
      ],
    ].map((parts) => parts.join('.'));

    for (const each of wrong) {
      const page = await open(`/files/${each}`);
      expect([page.status, page.text.includes('This link can’t be used')], each).toEqual([401, true]);
      expect(page.text).toContain('href="../owner"');
    }
    expect((await service.call('POST', `/files/${token}`, {})).status).toBe(404);
    const json = await service.get('/files/x', { headers: { accept: 'application/json' } });
    expect([json.status, json.json.error.reason]).toEqual([401, 'invalid_token']);
    expect(readFileLink(secretKey, token, Date.now())).toEqual({
      ok: true,
      formId,
      ownerEpoch: 0,
      uploadId,
    });
  });

  it('says that a file was deleted with its answer or its form', async () => {
    const [first, second] = [await givenFile(), await givenFile()];
    const links = [first, second].map(({ formId, uploadId }) => linkTo(formId, uploadId));

    await service.delete(`/v1/submissions/${first.submissionId}`);
    await service.post(`/v1/forms/${second.formId}/archive`, {});
    expect((await open(links[1] ?? '')).status).toBe(200);
    await service.delete(`/v1/forms/${second.formId}`);

    for (const link of links) {
      const page = await open(link);
      expect([page.status, page.text.includes('This file was deleted')]).toEqual([410, true]);
    }
  });

  it('of one form never opens a file of another, and no owner gets another’s files', async () => {
    const [ada, bob] = [await givenFile(), await givenFile()];
    const row = { cv: { upload_id: bob.uploadId } };
    const stolen = await service.post(`/api/forms/${ada.formId}/submissions`, { answers: row });

    const asAda = await signedInAs(ada.address);
    const csv = await asAda('POST', `forms/${ada.formId}/export`, 'format=csv');
    const links = csv.text.match(/\/files\/[\w.-]+/g) ?? [];
    const foreign = await asAda('GET', `files/${bob.uploadId}`);

    expect(stolen.status).toBe(422);
    expect(links).toHaveLength(1);
    expect(readFileLink(secretKey, links[0]?.slice(7) ?? '', Date.now())).toMatchObject({
      uploadId: ada.uploadId,
    });
    expect((await open(linkTo(ada.formId, bob.uploadId))).status).toBe(410);
    expect((await asAda('GET', `files/${ada.uploadId}`)).status).toBe(200);
    expect(foreign.status).toBe(404);
    expect((await asAda('POST', `forms/${bob.formId}/export`, 'format=csv')).status).toBe(404);
  });

  it('is read by RPC too, and stands in no log', async () => {
    const { formId, uploadId } = await givenFile();
    const link = linkTo(formId, uploadId);
    const token = link.split('/files/').at(-1) ?? '';

    const file = await fileOf(service.client(UploadsService, 'grpc', null).getLinkedUpload({ token }));
    await open(link);
    await open(`${link}x`);

    expect(file.content.equals(content)).toBe(true);
    const lines = service.logged.filter((line) => line.includes('/files/'));
    expect(lines.length).toBeGreaterThan(1);
    expect(service.logged.join()).not.toContain(token.slice(0, 40));
  });

  /** Signs an owner in, and returns what calls pages as that owner. */
  async function signedInAs(address: string) {
    const origin = { origin: service.url, 'content-type': 'application/x-www-form-urlencoded' };
    const path = `${service.url}/owner/sign-in/${await givenSignInLink(service.database, address)}`;
    const opened = await fetch(path, { method: 'POST', headers: origin, redirect: 'manual' });
    const set = opened.headers.getSetCookie().find((each) => each.startsWith('owner='));
    const [cookie = ''] = set?.split(';') ?? [];
    const home = await (await fetch(`${service.url}/owner`, { headers: { cookie } })).text();
    const [, csrf = ''] = /name="csrf" value="([\w-]+)"/.exec(home) ?? [];
    return async (method: string, page: string, inputs = '') => {
      const reply = await fetch(`${service.url}/owner/${page}`, {
        method,
        headers: { ...origin, cookie },
        ...(method === 'POST' && { body: `csrf=${csrf}&${inputs}` }),
      });
      return { status: reply.status, text: await reply.text() };
    };
  }
});
