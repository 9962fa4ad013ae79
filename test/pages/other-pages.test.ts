import { gunzipSync } from 'node:zlib';
import { Code, createClient } from '@connectrpc/connect';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ServerReflection } from '../../gen/grpc/reflection/v1/reflection_pb.js';
import { startService, type TestService } from '../support/server.ts';
import { until } from '../support/until.ts';

let service: TestService;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service[Symbol.asyncDispose]());

describe('the activation page', () => {
  it('asks for an address, publishes by its post, and then can’t be used again', async () => {
    const draft = await service.givenDraft({ name: 'Tom & Jerry' });

    const page = await service.get(draft.activate_url, { key: null });
    const unchanged = await service.get(`/v1/forms/${draft.id}`);
    const activated = await postForm(draft.activate_url, { email: 'owner@example.com' });
    const used = await service.get(draft.activate_url, { key: null });
    const again = await postForm(draft.activate_url, { email: 'owner@example.com' });

    expect(page.status).toBe(200);
    expect(page.text).toContain('Activate “Tom &amp; Jerry”');
    expect(page.headers.get('cache-control')).toBe('no-store');
    expect(page.headers.get('referrer-policy')).toBe('no-referrer');
    expect(unchanged.json.form.status).toBe('draft');
    expect([activated.status, activated.text.includes('The form is active')]).toEqual([200, true]);
    expect([used.status, used.text.includes('This form is already active')]).toEqual([200, true]);
    expect(used.text).toContain(`/f/${draft.id}">Open form</a>`);
    expect([again.status, again.headers.get('location')]).toEqual([303, draft.activate_url]);
  });

  it('says that answers wait for the confirmation if the form was made without a key, and makes no links of its name', async () => {
    const draft = await service.givenDraft({ name: 'Win at evil.example' }, { key: null });

    const page = await service.get(draft.activate_url, { key: null });
    const activated = await postForm(draft.activate_url, { email: 'owner@example.com' });

    expect(page.text).toContain('Activate “Win at […]”');
    expect(activated.text).toContain('“Win at […]” is live.');
    expect(activated.text).toContain('Responses are held until you confirm your address.');
    expect([page.text, activated.text].join()).not.toContain('evil.example');
  });

  it('shows a signing secret that was made, this once', async () => {
    const draft = await service.givenDraft({
      delivery: { type: 'webhook', url: 'https://example.com/hook' },
    });

    const activated = await postForm(draft.activate_url, { email: 'owner@example.com' });

    expect(activated.text).toMatch(/<code>whsec_[\w+/=]+<\/code>/);
  });

  it.each([
    ['', 400, 'bad_request'],
    ['?token=wrong', 401, 'invalid_token'],
  ])('refuses the token "%s" with %i', async (query, status, reason) => {
    const draft = await service.givenDraft();
    const path = `/api/forms/${draft.id}/activate${query}`;

    const page = await service.get(path, { key: null });
    const json = await service.get(path, { key: null, headers: { accept: 'application/json' } });

    expect([page.status, page.headers.get('content-type')]).toEqual([status, 'text/html; charset=utf-8']);
    expect([json.status, json.json.error.reason]).toEqual([status, reason]);
  });
});

describe('a mailed link', () => {
  it('stops mail by its button, not by being opened, and by a mail program’s one click', async () => {
    const form = await service.givenPublishedForm();
    await service.post(`/api/forms/${form.id}/submissions`, { answers: { email: 'a@example.com' } });
    const link = async () => /List-Unsubscribe:\s*<([^>]+)>/i.exec((await service.mails()).join('\n'))?.[1];
    await until(async () => (await link()) !== undefined);
    const path = new URL((await link())?.replace(/\s/g, '') ?? '').pathname;

    const page = await service.get(path, { key: null });
    const oneClick = await postForm(path, { 'List-Unsubscribe': 'One-Click' });
    const all = await postForm(path, { stop: 'all' });

    expect(page.status).toBe(200);
    expect(page.text).toContain('Which emails should we stop sending to owner@example.com?');
    expect([oneClick.status, all.status]).toEqual([200, 200]);
    expect(oneClick.text).toContain('no longer gets these emails');
    expect(all.text).toContain('no longer gets emails from this service, except sign-in links on request');
    expect(all.text).toContain('<button name="start" value="yes">Start emails again</button>');

    const stopped = await service.get(path, { key: null });
    const still = await postForm(path, { 'List-Unsubscribe': 'One-Click', start: 'yes' });
    const started = await postForm(path, { start: 'yes' });
    const again = await service.get(path, { key: null });

    expect(stopped.text).toContain('Start emails again');
    expect(stopped.text).toContain('value="everything"');
    expect(stopped.text).not.toContain('value="form"');
    expect(still.text).not.toContain('gets these emails again');
    expect(started.text).toContain('owner@example.com gets these emails again.');
    expect(again.text).toContain('Which emails should we stop sending to owner@example.com?');
  });

  it('quotes the name of its form without links', async () => {
    const draft = await service.givenDraft({ name: 'Form at evil.example' });
    await service.post(draft.activate_url, { email: 'ada@example.com' });
    const path = async () => {
      const mail = (await service.mails()).find((text) => text.includes('Form at'));
      return /\/mail\/confirm-owner\.[\w.-]+/.exec(mail?.replaceAll('=\r\n', '') ?? '')?.[0];
    };
    await until(async () => (await path()) !== undefined);

    const page = await service.get((await path()) ?? '', { key: null });
    const done = await postForm((await path()) ?? '', {});

    expect([page.status, done.status]).toEqual([200, 200]);
    expect(page.text).toContain('owns “Form at […]”');
    expect(done.text).toContain('the owner of “Form at […]”');
  });

  it('is refused where it is made up: 401', async () => {
    for (const reply of [await service.get('/mail/made-up'), await postForm('/mail/made-up', {})]) {
      expect([reply.status, reply.text.includes('This link can’t be used')]).toEqual([401, true]);
    }
  });
});

describe('the address of a page', () => {
  it.each(['/f/%ff', '/s/%ff', '/mail/stop.token%', '/files/%ff', '/api/forms/%ff/activate'])(
    'is refused as %s, which can’t be decoded, without a word of it',
    async (path) => {
      const page = await service.get(path, { key: null });
      const reply = await service.get(path, { key: null, headers: { accept: 'application/json' } });

      expect([page.status, reply.status]).toEqual([400, 400]);
      expect(page.text).toContain('<html lang="en"');
      expect(page.text).not.toMatch(/URIError|node_modules|%/);
      expect(page.headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
      expect(page.headers.get('cache-control')).toBe('no-store');
      expect(reply.json).toMatchObject({ error: { code: 'validation_failed', reason: 'bad_request' } });
      expect(service.logged).toEqual([]);
    },
  );

  it('is refused in JSON where a program posts to an activation link that can’t be decoded', async () => {
    const { status, json } = await service.post('/api/forms/%ff/activate', { email: 'ada@example.com' });

    expect([status, json.error.reason]).toEqual([400, 'bad_request']);
  });
});

describe('a static site’s own form', () => {
  it('gets a page of thanks, and the form itself where an answer was refused', async () => {
    const form = await service.givenPublishedForm({ settings: { locale: 'fr' } });
    const path = `/api/forms/${form.id}/submissions`;

    const thanks = await postForm(path, { email: 'a@example.com' });
    const refused = await postForm(path, { email: '<b>' });

    expect([thanks.status, thanks.text.includes('Merci')]).toEqual([201, true]);
    expect(refused.status).toBe(422);
    expect(refused.text).toContain('<html lang="fr"');
    expect(refused.text).toMatch(/<input [^>]*id="email\.0"[^>]* value="&lt;b&gt;"/);
    expect(refused.text).toMatch(
      /<p class="error" id="email\.error"><span class="sr">Erreur : <\/span>Saisissez/,
    );
    expect(refused.text).not.toContain('<b>');
    expect(thanks.headers.get('content-security-policy')).toContain("default-src 'none'");
  });
});

describe('every answer', () => {
  it('lets a browser that shows it load, run and frame nothing, and tells no other site of it', async () => {
    const { id } = await service.givenPublishedForm();
    const script = /src="([^"]+)"/.exec((await service.get(`/f/${id}`, { key: null })).text)?.[1] ?? '';
    const paths = ['/', '/docs', '/owner', `/f/${id}`, '/f/none', '/mail/none', '/files/none', '/embed.js'];
    paths.push(`/f/${id}/qr.svg`, '/f/none/qr.svg');
    paths.push('/openapi.json', '/descriptor.binpb', '/llms.txt', '/mcp', '/health', '/v1/forms', '/nowhere');
    paths.push(new URL(script, `${service.url}/f/${id}`).pathname);
    paths.push('/headlessforms.v1.FormsService/GetForm?message={}&encoding=json&connect=v1');

    for (const path of paths) {
      const { headers } = await fetch(new URL(path, service.url));
      const policy = headers.get('content-security-policy');
      expect([path, policy]).toEqual([path, expect.stringMatching(/default-src 'none'.*base-uri 'none'/)]);
      expect([path, policy]).toEqual([path, expect.stringMatching(/frame-ancestors 'none'|sandbox/)]);
      // Pages that post have to name their origin.
      const referrer = ['/owner', `/f/${id}`, '/f/none'].includes(path) ? 'same-origin' : 'no-referrer';
      expect([path, headers.get('referrer-policy')]).toEqual([path, referrer]);
      expect(headers.get('x-content-type-options')).toBe('nosniff');
    }
  });
});

describe('TRACE', () => {
  it.each(['/', '/health', '/v1/forms', '/owner', '/mcp', '/openapi.json', '/f/sess_x'])(
    'says nothing of a request: %s',
    async (path) => {
      const headers = { cookie: 'owner=secret' };
      const { statusCode, body } = await request(service.url + path, { method: 'TRACE', headers });

      expect(statusCode).toBeOneOf([404, 405]);
      expect(await body.text()).not.toContain('secret');
    },
  );
});

describe('what an operator turns off', () => {
  it('is not there, and nothing leads to it', async () => {
    await using bare = await startService({ env: { DOCS: 'off', REFLECTION: 'off', DEMO: 'off' } });
    const answers = { name: 'Ada', email: 'ada@example.com', message: 'Hello' };
    const reflection = createClient(ServerReflection, bare.transport('grpc', null));
    async function* asked() {
      yield { messageRequest: { case: 'listServices' as const, value: '' } };
    }
    const listed = reflection.serverReflectionInfo(asked())[Symbol.asyncIterator]();

    await expect(listed.next()).rejects.toMatchObject({ code: Code.Unimplemented });
    expect((await bare.get('/docs')).status).toBe(404);
    expect((await bare.post('/api/demo', { answers }, { key: null })).status).toBe(404);
    expect((await bare.post('/api/forms/form_demo/submissions', { answers }, { key: null })).status).toBe(
      404,
    );
    expect((await bare.get('/f/form_demo')).status).toBe(404);
    expect((await bare.get('/')).text).not.toMatch(/href="[^"]*(docs|form_demo)"/);
  });
});

describe('the files of the pages', () => {
  it('are found from every page, kept permanently, and small', async () => {
    const form = await service.givenPublishedForm();
    const { session } = (await service.post(`/v1/forms/${form.id}/sessions`)).json;
    const page = await service.get(`/f/${session.id}`);
    const paths = [...page.text.matchAll(/(?:href|src)="(\.\.\/assets[^"]+)"/g)].map(([, path = '']) => path);

    const sizes = { css: 0, js: 0 };
    for (const path of new Set(paths)) {
      const { statusCode, headers, body } = await request(new URL(path, `${service.url}/f/x`), {
        headers: { 'accept-encoding': 'br' },
      });
      expect([statusCode, headers['content-encoding']]).toEqual([200, 'br']);
      expect(headers['cache-control']).toContain('immutable');
      sizes[path.endsWith('.css') ? 'css' : 'js'] += (await body.arrayBuffer()).byteLength;
    }

    expect(sizes.css).toBeGreaterThan(500);
    expect(sizes.css).toBeLessThan(10_000);
    expect(sizes.js).toBeGreaterThan(500);
    expect(sizes.js).toBeLessThan(12_000);
  });

  it('say 404 for a file that is not there', async () => {
    expect((await service.get('/assets/0000/style.css')).status).toBe(404);
  });

  it('make a page of twenty fields with twenty choices smaller than 15 KB', async () => {
    const options = Array.from({ length: 20 }, (_, index) => ({
      label: `Choice ${index}`,
      value: `v${index}`,
    }));
    const fields = Array.from({ length: 20 }, (_, index) => ({ id: `f${index}`, type: 'radio', options }));
    const form = await service.givenPublishedForm({ fields });
    const { session } = (await service.post(`/v1/forms/${form.id}/sessions`)).json;

    const { headers, body } = await request(`${service.url}/f/${session.id}`, {
      headers: { 'accept-encoding': 'gzip' },
    });

    const bytes = Buffer.from(await body.arrayBuffer());
    expect(headers['content-encoding']).toBe('gzip');
    expect(bytes.length).toBeLessThan(15_000);
    expect(gunzipSync(bytes).toString()).toContain('</html>');
  });
});

function postForm(path: string, inputs: Record<string, string>) {
  return service.call('POST', path, new URLSearchParams(inputs).toString(), {
    key: null,
    headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'text/html' },
  });
}
