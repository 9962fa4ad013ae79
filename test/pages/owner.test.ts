import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hashSecret } from '../../src/domain/secrets/new-secrets.ts';
import { createOwnerPages } from '../../src/pages/owner/router.ts';
import { chooseLanguage, languages } from '../../src/text/words.ts';
import { givenSignInLink } from '../support/owner.ts';
import { startService, type TestService } from '../support/server.ts';

describe('the owner’s routes', () => {
  let service: TestService;

  beforeAll(async () => {
    service = await startService();
  });
  afterAll(() => service[Symbol.asyncDispose]());

  const send = (method: string, path: string, { cookie, origin, body }: Sent = {}) =>
    fetch(new URL(`/owner${path}`, service.url), {
      method,
      redirect: 'manual',
      headers: { ...(cookie && { cookie }), ...(origin && { origin }) },
      ...(body && { body: new URLSearchParams(body) }),
    });
  const linkFor = (address: string) => givenSignInLink(service.database, address);

  async function givenOwner(definition: object = {}) {
    const address = `${crypto.randomUUID()}@example.com`;
    const { id, activate_url } = await service.givenDraft({
      fields: [{ id: 'cv', type: 'file' }],
      ...definition,
    });
    await service.post(activate_url, { email: address });
    await service.database.execute('update forms set owner_confirmed_at = now() where id = $1', [id]);
    const file = new FormData();
    file.set('file', new File(['my life'], 'cv.html'));
    const { upload_id: uploadId } = (await service.post(`/api/forms/${id}/uploads?field=cv`, file)).json
      .upload;
    const answers = { cv: { upload_id: uploadId } };
    const submissionId = (await service.post(`/api/forms/${id}/submissions`, { answers })).json.submission_id;
    const opened = await send('POST', `/sign-in/${await linkFor(address)}`, { origin: service.url });
    const cookie = sessionIn(opened);
    const page = await (await send('GET', `/forms/${id}`, { cookie })).text();
    const csrf = /name="csrf" value="([\w-]+)"/.exec(page)?.[1] ?? '';
    return { address, id, uploadId, submissionId, cookie, csrf };
  }

  it('set a cookie that scripts and other sites can’t use, and no page is kept', async () => {
    const link = await linkFor('ada@example.com');
    const shown = await send('GET', `/sign-in/${link}`);
    const again = await send('GET', `/sign-in/${link}`);
    const opened = await send('POST', `/sign-in/${link}`, { origin: service.url });
    const used = await send('POST', `/sign-in/${link}`, { origin: service.url });

    expect([shown.status, again.status, opened.status, used.status]).toEqual([200, 200, 303, 401]);
    const [browserCookie, cookie, device] = opened.headers.getSetCookie();
    expect(browserCookie).toMatch(
      /^owner-browser=\w{43}; Max-Age=31536000; Path=\/; Expires=[^;]+; HttpOnly; SameSite=Lax$/,
    );
    expect(cookie).toMatch(/^owner=own_[^;]+; Path=\/; Expires=[^;]+; HttpOnly; SameSite=Lax$/);
    expect(device).toMatch(
      /^owner-device=[^;]+; Max-Age=31536000; Path=\/; Expires=[^;]+; HttpOnly; SameSite=Lax$/,
    );
    for (const reply of [shown, opened, used]) expect(reply.headers.get('cache-control')).toBe('no-store');
    const policy = shown.headers.get('content-security-policy');
    expect(policy).toContain("default-src 'none'; style-src 'self'; script-src 'self'");
    expect(policy).toContain("form-action 'self';");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(await shown.text()).not.toMatch(/<script|style=|onclick/);
  });

  it('give the same answer to every address, and refuse what is none', async () => {
    const { address } = await givenOwner();
    const ask = async (email: string) => {
      const reply = await send('POST', '/sign-in', { origin: service.url, body: { email } });
      return [reply.status, (await reply.text()).replaceAll(email, '')];
    };

    expect(await ask(address)).toEqual(await ask('nobody@example.com'));
    expect((await ask('nobody'))[0]).toBe(422);
  });

  it('refuse posts from other origins, without an origin, and without the token of the session', async () => {
    const { submissionId, id, cookie, csrf } = await givenOwner();
    const other = await givenOwner();
    const body = { csrf };
    const refused: Sent[] = [
      { cookie, body },
      { cookie, body, origin: 'null' },
      { cookie, body, origin: 'https://evil.example' },
      { cookie, body: {}, origin: service.url },
      { cookie, body: { csrf: other.csrf }, origin: service.url },
    ];

    for (const path of [`/submissions/${submissionId}/delete`, '/sign-out', `/forms/${id}/export`])
      for (const sent of refused) expect((await send('POST', path, sent)).status, path).toBe(401);
    for (const origin of [undefined, 'null', 'https://evil.example']) {
      const body = { email: 'ada@example.com' };
      expect((await send('POST', '/sign-in', { body, ...(origin && { origin }) })).status).toBe(401);
      const link = `/sign-in/${await linkFor('ada@example.com')}`;
      expect((await send('POST', link, { ...(origin && { origin }) })).status).toBe(401);
    }
    expect((await send('GET', `/submissions/${submissionId}`, { cookie })).status).toBe(200);
    expect(
      (await send('POST', `/submissions/${submissionId}/delete`, { cookie, body, origin: service.url }))
        .status,
    ).toBe(303);
    expect((await send('GET', `/submissions/${submissionId}`, { cookie })).status).toBe(404);
  });

  it('show an owner nothing of another’s, nor anything to who is not signed in', async () => {
    const own = await givenOwner();
    const other = await givenOwner();
    const { cookie, csrf } = own;
    const gets = [
      `/forms/${other.id}`,
      `/forms/${other.id}/charts`,
      `/forms/${other.id}/settings`,
      `/submissions/${other.submissionId}`,
      `/submissions/${other.submissionId}/delete`,
      `/files/${other.uploadId}`,
    ];
    const posts = [
      `/forms/${other.id}/search`,
      `/forms/${other.id}/export`,
      `/forms/${other.id}/close`,
      `/forms/${other.id}/reopen`,
      `/forms/${other.id}/mails`,
      `/forms/${other.id}/recipients`,
      `/forms/${other.id}/recipients/remove`,
      `/forms/${other.id}/hand-over`,
      `/forms/${other.id}/confirm`,
      `/submissions/${other.submissionId}/delete`,
    ];
    const body = { csrf, text: 'a', format: 'csv', email: 'mine@example.com' };

    for (const path of gets) {
      expect((await send('GET', path, { cookie })).status, path).toBe(404);
      expect((await send('GET', path, { cookie: other.cookie })).status, path).toBe(200);
      for (const given of [undefined, 'owner=own_x', `owner=${service.key}`])
        expect((await send('GET', path, { ...(given && { cookie: given }) })).status, path).toBe(401);
    }
    for (const path of posts) {
      expect((await send('POST', path, { cookie, body, origin: service.url })).status, path).toBe(404);
      expect((await send('POST', path, { body, origin: service.url })).status, path).toBe(401);
      expect((await send('GET', path, { cookie: other.cookie })).status, path).toBe(
        path.endsWith('/delete') ? 200 : 404,
      );
    }
    expect(await (await send('GET', '', { cookie })).text()).not.toContain(other.id);
    expect((await send('GET', `/submissions/${other.submissionId}`, { cookie: other.cookie })).status).toBe(
      200,
    );
  });

  it('refuse, on every one, posts of other sites and sessions of others, and change nothing by GET', async () => {
    const { id, submissionId, uploadId, cookie, csrf, address } = await givenOwner();
    const [stranger, ended] = [await givenOwner(), await givenOwner()];
    await send('POST', '/sign-out', {
      cookie: ended.cookie,
      origin: service.url,
      body: { csrf: ended.csrf },
    });
    const state = async () => [
      await service.database.select('select * from forms where id = $1', [id]),
      await service.database.select('select id from submissions where form_id = $1', [id]),
      await service.database.select('select * from owner_sessions where address = $1', [address]),
      await service.database.select('select * from mail_recipients where form_id = $1', [id]),
      await service.database.select('select * from mail_stops where address = $1', [address]),
    ];
    const before = await state();
    const ids: Record<string, string> = { forms: id, submissions: submissionId, files: uploadId };
    const session = hashSecret(decodeURIComponent(cookie.slice('owner='.length)));
    const inputs = { csrf, email: 'mine@example.com', text: 'a', format: 'csv', stop: 'yes', session };
    const { url: origin } = service;

    for (const { method, path: pattern } of routesOfSession()) {
      const path = pattern.replace('/owner', '').replace(':id', ids[pattern.split('/')[2] ?? ''] ?? '');
      const others = [undefined, 'owner=own_x', `owner=${service.key}`, ended.cookie];
      if (method === 'get') {
        if (path !== '') expect((await send('GET', path, stranger)).status, path).toBe(404);
        expect((await send('GET', path, { cookie })).status, path).toBe(200);
        for (const other of others)
          expect((await send('GET', path, { ...(other && { cookie: other }) })).status, path).toBe(
            path === '' ? 200 : 401,
          );
        continue;
      }
      const refused: Sent[] = [
        { cookie, body: inputs },
        { cookie, body: inputs, origin: 'null' },
        { cookie, body: inputs, origin: 'https://evil.example' },
        { cookie, body: { ...inputs, csrf: '' }, origin },
        { cookie, body: { ...inputs, csrf: stranger.csrf }, origin },
        { cookie: `${cookie}x`, body: inputs, origin },
        ...others.map((other) => ({ ...(other && { cookie: other }), body: inputs, origin })),
      ];
      for (const sent of refused) expect((await send('POST', path, sent)).status, path).toBe(401);
      if (path !== '/sign-out') {
        const body = { ...inputs, csrf: stranger.csrf };
        // To end a session of another is to end none.
        expect((await send('POST', path, { cookie: stranger.cookie, body, origin })).status, path).toBe(
          path === '/sessions/end' ? 303 : 404,
        );
      }
      await send('GET', path, { cookie });
    }

    expect(routesOfSession().length).toBeGreaterThanOrEqual(18);
    expect(await state()).toEqual(before);
  });

  it('send files as downloads that run nothing', async () => {
    const { uploadId, cookie } = await givenOwner();

    const { headers } = await send('GET', `/files/${uploadId}`, { cookie });

    expect(headers.get('content-disposition')).toBe('attachment; filename=cv.html');
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('content-security-policy')).toContain('sandbox');
  });

  it('ask to sign in once a session has ended, and forget its cookie', async () => {
    const { cookie, csrf, id } = await givenOwner();

    const signOut = { cookie, origin: service.url, body: { csrf, everywhere: 'yes' } };
    const signedOut = await send('POST', '/sign-out', signOut);
    const after = await send('GET', `/forms/${id}`, { cookie });

    // What people have typed into forms by the same origin stays.
    expect([signedOut.status, signedOut.headers.get('clear-site-data')]).toEqual([200, '"cache"']);
    expect(after.status).toBe(401);
    expect(after.headers.getSetCookie().join()).toMatch(/owner=; Path=\/; Expires=Thu, 01 Jan 1970/);
  });

  it('ask to sign in again to delete what is open for long, and lead back after it', async () => {
    const { address, submissionId, cookie, csrf } = await givenOwner();
    await service.database.execute(
      "update owner_sessions set created_at = now() - interval '16 minutes' where address = $1",
      [address],
    );
    const body = { csrf };

    const asked = await send('POST', `/submissions/${submissionId}/delete`, {
      cookie,
      body,
      origin: service.url,
    });

    expect(asked.status).toBe(401);
    expect(await asked.text()).toContain('You signed in more than 15 minutes ago');
    expect(asked.headers.getSetCookie().join()).toContain(
      encodeURIComponent(`/owner/submissions/${submissionId}`),
    );
    expect((await send('GET', `/submissions/${submissionId}`, { cookie })).status).toBe(200);
  });

  it.each([...Object.keys(languages), 'de-AT'])('are in the language of the reader, %s', async (language) => {
    const before = Date.now();
    const { id, submissionId, cookie } = await givenOwner();
    const made = [before, Date.now()];
    const headers = { cookie, 'accept-language': language };
    const get = async (path: string) => (await fetch(`${service.url}/owner${path}`, { headers })).text();
    const { tag, direction, owner } = chooseLanguage('', language);

    expect(titleIn(await get(''))).toBe(owner.title);
    for (const path of ['', `/forms/${id}`, `/forms/${id}/charts`, `/forms/${id}/settings`]) {
      expect(await get(path), path).toContain(`<html lang="${tag}" dir="${direction}"`);
    }
    // Two at most, at the turn of a year.
    const format = new Intl.DateTimeFormat(tag, { year: 'numeric', timeZone: 'UTC' });
    const years = new Set(made.map((time) => format.format(time)));
    const title = titleIn(await get(`/submissions/${submissionId}`));
    expect([...years].filter((year) => title?.includes(year))).toHaveLength(1);
  });

  it('read questions, options and answers in the language of the reader, where the form has it', async () => {
    const options = [{ label: 'Red', value: 'r' }];
    const { id, cookie, csrf } = await givenOwner({
      fields: [
        { id: 'cv', type: 'file', label: 'Résumé' },
        { id: 'colour', type: 'radio', label: 'Colour', options },
        { id: 'sure', type: 'boolean', label: 'Are you sure?' },
        { id: 'day', type: 'date', label: 'Day' },
        { id: 'at', type: 'datetime', label: 'Moment' },
      ],
      settings: { locale: 'en' },
      translations: {
        de: {
          fields: {
            cv: { label: 'Lebenslauf' },
            colour: { label: 'Farbe', options: { r: 'Rot' } },
            sure: { label: 'Sicher?' },
            day: { label: 'Tag' },
          },
        },
      },
    });
    const answers = { colour: 'r', sure: true, day: '2026-07-01', at: '2026-07-01T00:30:00+05:45' };
    const made = await service.post(`/api/forms/${id}/submissions`, { answers });
    const read = async (language: string, path: string, body?: Record<string, string>) => {
      const reply = await fetch(`${service.url}/owner${path}`, {
        method: body === undefined ? 'GET' : 'POST',
        headers: { cookie, 'accept-language': language, origin: service.url },
        ...(body && { body: new URLSearchParams({ csrf, ...body }) }),
      });
      return (await reply.text()).replaceAll(/<script[\s\S]*?<\/script>/g, '');
    };

    for (const [language, theirs, others] of [
      ['de-AT', ['Farbe', 'Rot', 'Sicher?', 'Ja'], ['Colour', 'Red', 'Are you sure?']],
      ['en', ['Colour', 'Red', 'Are you sure?', 'Yes'], ['Farbe', 'Rot', 'Sicher?']],
      // The form does not have it.
      ['fr', ['Colour', 'Red', 'Are you sure?', 'Yes'], ['Farbe', 'Rot', 'Sicher?']],
    ] as const) {
      const pages = [
        await read(language, `/forms/${id}`),
        await read(language, `/forms/${id}/charts`),
        await read(language, `/submissions/${made.json.submission_id}`),
        await read(language, `/forms/${id}/search`, { text: theirs[1] }),
      ];
      for (const page of pages) {
        for (const text of theirs) expect(page, language).toContain(text);
        for (const text of others) expect(page, language).not.toContain(`>${text}<`);
      }
      const csv = await read(language, `/forms/${id}/export`, { format: 'csv' });
      const [, , row = ''] = csv.split('\r\n');
      const marks = language === 'en' ? ',' : ';';
      expect(csv.split('\r\n')[0]).toContain(theirs[0]);
      expect(row.split(marks).slice(2, 6)).toEqual([
        theirs[1],
        language === 'fr' ? 'Oui' : theirs[3],
        '2026-07-01',
        '2026-07-01T00:30:00+05:45',
      ]);
    }
  });

  it('have no button that needs a script, but hidden ones', async () => {
    const { id, submissionId, cookie } = await givenOwner();
    const ends = ['', '/charts', '/settings', '/share', '/texts', '/delete'];
    const paths = ['', ...ends.map((end) => `/forms/${id}${end}`)];

    for (const path of [...paths, `/submissions/${submissionId}`, `/submissions/${submissionId}/delete`]) {
      const page = await (await send('GET', path, { cookie })).text();
      const outsideOfForms = page.replaceAll(/<form[^>]* action="[\s\S]*?<\/form>/g, '');
      const posting = page.match(/<button(?![^>]* type="button")[^>]*>/g) ?? [];
      const others = outsideOfForms.match(/<button[^>]*>/g) ?? [];
      expect([path, others.filter((button) => !/ type="button".* hidden>/.test(button))]).toEqual([path, []]);
      expect(posting.length, path).toBeGreaterThan(0);
    }
  });

  it('send cookies over https alone where the service is at https', async () => {
    await using secure = await startService({ env: { BASE_URL: 'https://forms.example' } });
    const link = await givenSignInLink(secure.database, 'ada@example.com');
    const url = new URL(`/owner/sign-in/${link}`, secure.url);

    const { headers } = await fetch(url, {
      method: 'POST',
      redirect: 'manual',
      headers: { origin: 'https://forms.example' },
    });

    const cookies = headers.getSetCookie();
    expect(cookies[1]).toMatch(
      /^__Host-owner=own_[^;]+; Path=\/; Expires=[^;]+; HttpOnly; Secure; SameSite=Lax$/,
    );
    for (const cookie of cookies.slice(0, 3))
      expect(cookie).toMatch(/^__Host-owner.*; Path=\/; .*; Secure; /);
  });
});

function titleIn(page: string): string | undefined {
  const [, title] = /<h1[^>]*>([\s\S]*?)<\/h1>/.exec(page) ?? [];
  return title?.replaceAll(/<[^>]*>/g, '');
}

/** The cookie that a reply signs in with. */
function sessionIn({ headers }: Response): string {
  const set = headers.getSetCookie().find((line) => line.startsWith('owner='));
  return set?.split(';')[0] ?? '';
}

/** The routes that need an owner's session, as the router has them, so that one that is added is tried as well. */
function routesOfSession(): { method: string; path: string }[] {
  const baseUrl = 'http://localhost';
  const router = createOwnerPages({ baseUrl, hostedUrl: baseUrl } as never);
  return router.stack
    .flatMap(({ route }) => (route === undefined ? [] : [route]))
    .filter(({ path }) => !path.startsWith('/owner/sign-in'))
    .flatMap(({ path, stack }) => stack.map(({ method }) => ({ method, path })))
    .filter(({ method }) => method === 'get' || method === 'post');
}

type Sent = { cookie?: string; origin?: string; body?: Record<string, string> };
