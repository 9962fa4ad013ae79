import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HostedService } from '../../gen/headlessforms/internal/v1/hosted_pb.js';
import { Reason } from '../../gen/headlessforms/v1/errors_pb.js';
import { expectFailure } from '../support/failures.ts';
import { postsOf } from '../support/hosted.ts';
import { startService, type TestService } from '../support/server.ts';

const fields = [
  { id: 'source', type: 'hidden' },
  { id: 'name', type: 'text' },
  { id: 'cv', type: 'file' },
  { id: 'note', type: 'text', page: 2 },
];

/** Whose of each a request has: the visitor’s own, or another browser’s. */
const cookies = ['none', 'own', 'other'] as const;
const sessions = ['none', 'own', 'other', 'key-made'] as const;
const origins = ['ours', 'null', 'other', 'absent'] as const;
const sites = ['same-origin', 'none', 'same-site', 'cross-site', 'absent'] as const;
const doors = ['page', 'file in a page', 'file by the script'] as const;

type Person = { id: string; cookie: string; issued: string };

describe('a form’s own page', () => {
  let service: TestService;
  let formId: string;
  let own: Person;
  let other: Person;
  let keyMade: string;

  beforeAll(async () => {
    service = await startService();
    ({ id: formId } = await service.givenPublishedForm({ fields, settings: { allowPartial: true } }));
    [own, other] = [await givenVisitor('own-secret'), await givenVisitor('other-secret')];
    const made = await service.post(`/v1/forms/${formId}/sessions`, { prefill: { name: 'key-secret' } });
    keyMade = made.json.session.id;
  });
  afterAll(() => service[Symbol.asyncDispose]());

  const rows = cookies.flatMap((cookie) =>
    sessions.flatMap((session) => doors.map((door) => ({ cookie, session, door }))),
  );

  it.each(rows)(
    'takes its own posts alone, and goes on in the visitor’s own session alone: cookie $cookie, _session $session, $door',
    async ({ cookie, session, door }) => {
      for (const origin of origins) {
        for (const site of sites) {
          await reset();
          const named = { none: '', own: own.id, other: other.id, 'key-made': keyMade }[session];
          const sent = { none: '', own: own.cookie, other: other.cookie }[cookie];
          const isProven = origin === 'ours' || site !== 'absent';
          const isForeign = origin === 'other' || site === 'same-site' || site === 'cross-site';
          const isTaken = !isForeign && (isProven || (named === '' && sent === ''));
          const theirs = { none: undefined, own: own.id, other: other.id }[cookie];
          const isVisitors = session === 'own' || session === 'other';
          const goesOn = isVisitors && (theirs === undefined || theirs === named);

          const reply = await postBy(door, named, {
            ...(sent !== '' && { cookie: sent }),
            ...(origin !== 'absent' && {
              origin: { ours: service.url, null: 'null', other: 'https://evil.example' }[origin],
            }),
            ...(site !== 'absent' && { 'sec-fetch-site': site }),
          });

          const seen = await state();
          const set = cookieIn(reply);
          const place = `${origin}, ${site}`;
          expect(reply.text, place).not.toMatch(/own-secret|other-secret|key-secret/);
          expect(seen.before.get(keyMade), place).toEqual({ name: 'key-secret' });
          if (!isTaken) {
            expect([place, reply.status, set]).toEqual([place, 401, undefined]);
            expect(seen.changed, place).toEqual([]);
            expect(seen.fresh, place).toEqual([]);
            continue;
          }
          expect([200, 201, 303], place).toContain(reply.status);
          expect([place, seen.changed]).toEqual([place, goesOn && door !== doors[2] ? [named] : []]);
          // A file needs a session to be put for, which nobody can go on with where nobody knows whose the page is.
          expect([place, seen.fresh.length]).toEqual([
            place,
            goesOn || (!isProven && door === 'page') ? 0 : 1,
          ]);
          const begun = goesOn || !isProven ? undefined : seen.fresh[0];
          const kept = begun === undefined ? undefined : [begun, ...(theirs === undefined ? [] : [theirs])];
          expect([place, set]).toEqual([place, kept]);
        }
      }
    },
  );

  it('gives another browser that sends the same page another session, where it has begun one', async () => {
    await reset();
    // The page of the other visitor, who has begun a session with it.
    const page = { name: 'victim', _issued: other.issued, _go: 'save' };

    const saved = await post(page, { origin: service.url, cookie: own.cookie, accept: 'application/json' });

    expect([saved.status, saved.json.saved, (await state()).changed]).toEqual([200, true, []]);
    expect(saved.json.session_id).not.toBe(other.id);
    expect(cookieIn(saved)).toEqual([saved.json.session_id, own.id]);
  });

  it('never sets the cookie of a session that an earlier request has begun', async () => {
    await reset();
    const inputs = { name: 'victim', _issued: other.issued, _remember: 'yes' };

    const saved = await post(inputs, { origin: service.url });

    expect([saved.status, cookieIn(saved)]).toEqual([200, undefined]);
    expect(saved.text).not.toContain('other-secret');
  });

  it('shows a page anew, with a token of its own, where nobody knows whose page was posted', async () => {
    const page = await post({ name: 'victim', _issued: other.issued, _remember: 'yes' }, {});

    expect(page.status).toBe(200);
    expect(page.text).toContain('name="_session" value=""');
    expect(issuedIn(page.text)).toMatch(/\S/);
    expect(page.text).not.toContain(other.issued);
  });

  it('goes on without the cookie to the end, with what is posted and what its address has filled in', async () => {
    const address = `/f/${formId}?source=shop`;
    const issued = issuedIn((await service.get(address, { key: null })).text);
    const proven = { origin: service.url };
    const saved = await post(
      { name: 'Ada', note: 'saved-secret', _issued: issued, _go: 'save' },
      proven,
      address,
    );
    const { session_id: begun } = saved.json;
    const posted = { name: 'Ada', _issued: issued, _session: begun };

    const next = await post({ ...posted, _page: '1', _go: 'forward' }, proven);
    const both = [];
    for (let turn = 0; turn < 2; turn += 1)
      both.push(await post({ ...posted, _page: '2', _shown: 'note', _go: 'forward' }, proven));

    expect([next.status, ...both.map(({ status }) => status)]).toEqual([200, 200, 200]);
    for (const { text } of [next, ...both]) expect(text).not.toContain('saved-secret');
    for (const { text } of both) expect(text).toContain('Ada');
    const { submissions } = (await service.get(`/v1/forms/${formId}/submissions?session_id=${begun}`)).json;
    expect(submissions.map(({ answers }: { answers: object }) => answers)).toEqual([
      { source: 'shop', name: 'Ada' },
    ]);
  });

  it('shows its ending again without the cookie, which it takes away, and of the answers what was posted', async () => {
    const visitor = await givenVisitor('saved-secret');
    const inputs = {
      note: 'Posted',
      _page: '2',
      _shown: 'note',
      _session: visitor.id,
      _issued: visitor.issued,
      _go: 'forward',
    };

    const first = await post(inputs, { origin: service.url, cookie: visitor.cookie });
    const again = await post(inputs, { origin: service.url });

    expect([first.status, cookieIn(first), again.status]).toEqual([200, [], 200]);
    expect(first.text).toMatch(/saved-secret[\s\S]*Posted/);
    expect(again.text).toContain('Posted');
    expect(again.text).not.toContain('saved-secret');
  });

  it('finds what was begun by the cookie alone', async () => {
    await reset();
    const named = { key: null, headers: { 'x-form-session': own.id, 'x-form-issued': own.issued } };

    const stranger = await service.get(`/f/${formId}?_session=${own.id}&session_id=${own.id}`, named);
    const visitor = await service.get(`/f/${formId}`, { key: null, headers: { cookie: own.cookie } });
    const known = await service.get(`/f/${formId}`, {
      key: null,
      headers: { cookie: `form_visit=${keyMade}` },
    });

    expect(stranger.text).not.toContain('own-secret');
    expect(visitor.text).toContain('own-secret');
    expect(known.text).not.toContain('key-secret');
  });

  it('tells browsers to name its origin with a post, and other sites nothing', async () => {
    const refused = await post({ name: 'x' }, { origin: 'https://evil.example' });
    for (const path of [`/f/${formId}`, `/f/${keyMade}`, `/s/${keyMade}`, '/f/form_unknown']) {
      const { headers } = await service.get(path, { key: null });
      expect([path, headers.get('referrer-policy')]).toEqual([path, 'same-origin']);
    }
    const activation = await service.get((await service.givenDraft()).activate_url, { key: null });
    const link = await service.get('/mail/unknown', { key: null });

    expect(refused.headers.get('referrer-policy')).toBe('same-origin');
    expect([activation, link].map(({ headers }) => headers.get('referrer-policy'))).toEqual([
      'no-referrer',
      'no-referrer',
    ]);
  });

  it('refuses other sites’ posts where the form may be embedded, too, and the error can be read there', async () => {
    const { id } = await service.givenPublishedForm({
      fields,
      settings: { allowPartial: true, embedOrigins: ['https://shop.example'] },
    });
    const { session } = (await service.post(`/v1/forms/${id}/sessions`, {})).json;

    for (const path of [`/f/${id}`, `/f/${session.id}`, `/s/${session.id}`]) {
      for (const headers of [
        { origin: 'https://shop.example' },
        { origin: 'null', 'sec-fetch-site': 'cross-site' },
      ]) {
        const page = await post({ name: 'typed-here' }, headers, path);
        expect([page.status, page.text.includes('other sites'), page.text.includes('typed-here')]).toEqual([
          401,
          true,
          true,
        ]);
        expect(page.headers.get('content-security-policy')).toContain('frame-ancestors https://shop.example');
      }
    }
    const opened = (await service.get(`/v1/sessions/${session.id}`)).json.session.opened_at;
    const { submissions } = (await service.get(`/v1/forms/${id}/submissions`)).json;
    expect([submissions, opened]).toEqual([[], null]);
  });

  it('is not gone on with by the door of a site’s own form', async () => {
    await reset();
    const body = new URLSearchParams({
      name: 'Eve',
      _session: other.id,
      _issued: other.issued,
      _remember: 'yes',
    });

    const reply = await service.post(`/api/forms/${formId}/submissions`, body.toString(), {
      key: null,
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        accept: 'application/json',
        cookie: other.cookie,
        'x-form-session': other.id,
      },
    });

    expect([reply.status, cookieIn(reply), (await state()).changed]).toEqual([201, undefined, []]);
    const { submission } = (await service.get(`/v1/submissions/${reply.json.submission_id}`)).json;
    expect([submission.session_id, submission.answers]).toEqual([null, { name: 'Eve' }]);
  });

  it('is at two addresses, where a cookie that a sibling host could have set is not read', async () => {
    const env = { HOSTED_URL: 'https://forms.example', BASE_URL: 'https://api.example' };
    await using split = await startService({ env });
    const { id } = await split.givenPublishedForm({ fields, settings: { allowPartial: true } });
    const save = (origin: string, cookie = '') =>
      split.post(`/f/${id}`, new URLSearchParams({ name: 'Ada', _go: 'save' }).toString(), {
        key: null,
        headers: { ...asForm, accept: 'application/json', origin, cookie },
      });

    const replies = await Promise.all(
      [env.HOSTED_URL, env.BASE_URL, split.url, 'https://evil.example', 'https://x.forms.example'].map(
        (origin) => save(origin),
      ),
    );
    const begun = replies[0]?.json.session_id;
    const read = async (cookie: string) =>
      (await split.get(`/f/${id}`, { key: null, headers: { cookie } })).text;

    expect(replies.map(({ status }) => status)).toEqual([200, 200, 200, 401, 401]);
    expect(replies[0]?.headers.get('set-cookie')).toMatch(
      /^__Host-visit-form_\w+=sess_\w+; Path=\/; .*Secure/,
    );
    expect(await read(`__Host-visit-${id}=${begun}`)).toContain('value="Ada"');
    expect(await read(`form_visit=${begun}`)).not.toContain('value="Ada"');
  });

  it('is the address of what visitors have begun in lists of sessions', async () => {
    const { sessions: listed } = (await service.get(`/v1/forms/${formId}/sessions`)).json;

    const paths = new Map(
      listed.map(({ id, url }: { id: string; url: string }) => [id, new URL(url).pathname]),
    );
    expect(paths.get(own.id)).toBe(`/f/${formId}`);
    expect(paths.get(keyMade)).toBe(`/f/${keyMade}`);
  });

  it.each(['f', 's'])(
    'is the only one of a visitor’s session: /%s/sess_… answers 404, whatever is sent',
    async (path) => {
      await reset();
      const headers = { cookie: own.cookie, origin: service.url, 'sec-fetch-site': 'same-origin' };
      const address = `/${path}/${own.id}`;
      const posts = [
        ...['forward', 'back', 'save', 'restart', 'decline', 'page:2', 'move:name:0:1'].map((_go) => ({
          _go,
        })),
        { _code: 'send', email: 'eve@example.com' },
        { _code: 'give', code: '123456' },
      ].map((inputs) => ({ name: 'Eve', _session: own.id, _issued: own.issued, ...inputs }));

      const replies = [
        await service.get(address, { key: null, headers }),
        await service.get(address, { key: null, headers: { ...headers, accept: 'application/json' } }),
        await service.get(`${address}?step=2`, {
          key: null,
          headers: { ...headers, 'sec-purpose': 'prefetch' },
        }),
        await service.call('HEAD', address, undefined, { key: null, headers }),
        ...(await Promise.all(posts.map((inputs) => post(inputs, headers, address)))),
        await service.post(address, '{}', {
          key: null,
          headers: { ...headers, 'content-type': 'application/json' },
        }),
        await service.post(address, fileIn({ _issued: own.issued }), { key: null, headers }),
        await putFile(`${address}/uploads`, headers),
        await service.get(`${address}/qr.svg`, { key: null, headers }),
      ];

      expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([404]));
      expect(replies.map(({ text }) => text).join()).not.toContain('own-secret');
      expect(replies.flatMap((reply) => cookieIn(reply) ?? [])).toEqual([]);
      expect(await state()).toMatchObject({ changed: [], fresh: [] });
    },
  );

  it('is the only one of a visitor’s session for RPCs, too', async () => {
    const hosted = service.client(HostedService, 'connect', null);
    const browser = 'x'.repeat(32);
    const sessionId = own.id;

    for (const call of [
      () => hosted.getHosted({ sessionId }),
      () => hosted.getHosted({ sessionId, preview: true }),
      ...Object.values(postsOf(hosted)).map((posted) => () => posted({ sessionId, begun: [sessionId] })),
      () => hosted.sendRespondentCode({ sessionId, browser, email: 'eve@example.com' }),
      () => hosted.giveRespondentCode({ sessionId, browser, code: '123456' }),
    ]) {
      await expectFailure(call(), Reason.NOT_FOUND);
    }
  });

  it('leaves nobody without a key to read what visitors have begun, where calls need none', async () => {
    await using open = await startService({ env: { REQUIRE_API_KEY: 'false' } });
    const { id } = await open.givenPublishedForm({ fields, settings: { allowPartial: true } });
    const saved = await open.post(
      `/f/${id}`,
      new URLSearchParams({ name: 'own-secret', _go: 'save' }).toString(),
      {
        key: null,
        headers: { ...asForm, accept: 'application/json', origin: open.url },
      },
    );
    const made = await open.post(`/v1/forms/${id}/sessions`, {}, { key: null });
    const calls = (sessionId: string) => [
      () => open.get(`/v1/sessions/${sessionId}`, { key: null }),
      () => open.patch(`/v1/sessions/${sessionId}`, { answers: { note: 'Eve' } }, { key: null }),
      () => open.post(`/v1/sessions/${sessionId}/submit`, { answers: { note: 'Eve' } }, { key: null }),
    ];

    for (const call of calls(saved.json.session_id)) expect((await call()).status).toBe(404);
    for (const call of calls(made.json.session.id)) expect((await call()).status).not.toBe(404);
    const kept = await open.get(`/v1/sessions/${saved.json.session_id}`);
    expect(kept.json.session.partial_answers).toEqual({ name: 'own-secret' });
  });

  it('keeps the sessions of several tabs in its cookie, the last first, and not of too many', async () => {
    const begun: string[] = [];
    let cookie = '';
    for (let tab = 0; tab < 10; tab += 1) {
      const saved = await post({ name: `tab ${tab}`, _go: 'save' }, { origin: service.url, cookie });
      begun.unshift(saved.json.session_id);
      cookie = `form_visit=${cookieIn(saved)?.join('.')}`;
      expect(cookieIn(saved)).toEqual(begun.slice(0, 8));
    }

    const again = await post(
      { name: 'the third', _session: begun[2] ?? '', _go: 'save' },
      { origin: service.url, cookie },
    );

    expect(again.json.session_id).toBe(begun[2]);
    expect(cookieIn(again)?.slice(0, 4)).toEqual([begun[2], begun[0], begun[1], begun[3]]);
  });

  /** Somebody who has saved `name` in a browser of their own. */
  async function givenVisitor(name: string): Promise<Person> {
    const issued = issuedIn((await service.get(`/f/${formId}`, { key: null })).text);
    const saved = await post({ name, _issued: issued, _go: 'save' }, { origin: service.url });
    const [id = ''] = cookieIn(saved) ?? [];
    return { id, cookie: `form_visit=${id}`, issued };
  }

  /** Leaves the three sessions as they were first. */
  async function reset(): Promise<void> {
    await service.database.execute(`delete from sessions where form_id = $1 and id <> all($2)`, [
      formId,
      [own.id, other.id, keyMade],
    ]);
    for (const [id, name] of [
      [own.id, 'own-secret'],
      [other.id, 'other-secret'],
    ])
      await service.database.execute('update sessions set partial_answers = $2 where id = $1', [
        id,
        JSON.stringify({ name }),
      ]);
  }

  /** The three sessions, which of them were written to since, and which others there are. */
  async function state() {
    const rows = await service.database.select(
      'select id, prefill, partial_answers from sessions where form_id = $1',
      [formId],
    );
    const answers = new Map(rows.map((row) => [String(row.id), row.partial_answers ?? row.prefill]));
    const before = new Map([own.id, other.id, keyMade].map((id) => [id, answers.get(id)]));
    return {
      before,
      changed: [own.id, other.id].filter((id) => !/-secret"/.test(JSON.stringify(before.get(id)))),
      fresh: [...answers.keys()].filter((id) => !before.has(id)),
    };
  }

  async function postBy(door: (typeof doors)[number], named: string, headers: Record<string, string>) {
    const issuedNow = issuedIn((await service.get(`/f/${formId}`, { key: null })).text);
    const session: Record<string, string> = named === '' ? {} : { _session: named };
    const inputs = { ...session, _issued: issuedNow, name: 'typed', _page: '1', _go: 'forward' };
    if (door === 'page') return post(inputs, headers);
    if (door === 'file in a page')
      return service.post(`/f/${formId}`, fileIn(inputs), { key: null, headers });
    return putFile(`/f/${formId}/uploads`, {
      ...headers,
      'x-form-session': named,
      'x-form-issued': issuedNow,
    });
  }

  function post(inputs: Record<string, string>, headers: Record<string, string>, path = `/f/${formId}`) {
    const accept = inputs._go === 'save' ? 'application/json' : 'text/html';
    return service.post(path, new URLSearchParams(inputs).toString(), {
      key: null,
      headers: { accept, ...asForm, ...headers },
    });
  }

  function putFile(path: string, headers: Record<string, string>) {
    return service.post(`${path}?field=cv&filename=cv.txt`, 'text', {
      key: null,
      headers: { 'content-type': 'application/octet-stream', ...headers },
    });
  }
});

const asForm = { 'content-type': 'application/x-www-form-urlencoded' };

function fileIn(inputs: Record<string, string>): FormData {
  const data = new FormData();
  for (const [name, value] of Object.entries(inputs)) data.append(name, value);
  data.append('cv', new Blob(['text']), 'cv.txt');
  return data;
}

function issuedIn(text: string): string {
  return /name="_issued" value="([^"]+)"/.exec(text)?.[1] ?? '';
}

/** The sessions that a reply lets the browser keep; undefined if it sets no cookie. */
function cookieIn({ headers }: { headers: Headers }): string[] | undefined {
  const set = headers.get('set-cookie');
  if (set === null) return undefined;
  const [, value = ''] = /^(?:__Host-visit-\w+|form_visit)=([^;]*)/.exec(set) ?? [];
  return value.split('.').filter((part) => part.startsWith('sess_'));
}
