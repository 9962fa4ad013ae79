import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { HostedGoal, HostedService, HostedState } from '../../../gen/headlessforms/internal/v1/hosted_pb.js';
import { SessionsService } from '../../../gen/headlessforms/v1/sessions_pb.js';
import { SubmissionsService } from '../../../gen/headlessforms/v1/submissions_pb.js';
import { UploadsService } from '../../../gen/headlessforms/v1/uploads_pb.js';
import { CODE_TRIES, CODES_A_SESSION } from '../../../src/domain/sessions/respondent.ts';
import { stopMail } from '../../../src/store/mail/mail-recipients.ts';
import { startAgent } from '../../mcp/agent.ts';
import { engines, oneEngine } from '../../support/database.ts';
import { startMailServer } from '../../support/mail-server.ts';
import { anyone, deniedAs, refusedAs } from '../../support/replies.ts';
import { startService, type TestService } from '../../support/server.ts';
import { until } from '../../support/until.ts';
import { awaitWholeDay } from '../../support/utc-day.ts';

const definition = {
  fields: [
    { id: 'secret', label: 'A secret of Ada?', type: 'text', required: true },
    { id: 'paper', label: 'A paper', type: 'file' },
  ],
};

describe.each(engines)('respondents on %s', (engine) => {
  let service: TestService;
  let mails: Awaited<ReturnType<typeof startMailServer>>;
  beforeAll(async () => {
    mails = await startMailServer();
    service = await startService({
      engine,
      env: { SMTP_URL: mails.url, REQUIRE_API_KEY: 'false', TRUST_PROXY: '127.0.0.0/8' },
    });
  });
  afterAll(async () => {
    await service?.[Symbol.asyncDispose]();
    await mails?.[Symbol.asyncDispose]();
  });
  let count = 0;
  let ada = '';
  beforeEach(async () => {
    await awaitWholeDay();
    ada = `ada-${++count}@example.com`;
  });

  const asked = async (more: object = {}) => {
    const { json, status } = await service.post('/v1/sessions', {
      definition,
      respondent: { email: ada },
      allow_decline: true,
      context: { title: 'For Ada alone' },
      prefill: { secret: 'Prefilled for Ada' },
      ...more,
    });
    expect([status, json.error]).toEqual([201, undefined]);
    return json.session;
  };
  const form = (more: object = {}) =>
    service.givenPublishedForm({
      fields: [
        { id: 'name', type: 'text' },
        { id: 'paper', type: 'file' },
      ],
      settings: { onePerRespondent: true, allowPartial: true },
      ...more,
    });

  it(`mails ${CODES_A_SESSION} codes a session, each of ${CODE_TRIES} tries, also of many at once`, async () => {
    const { id } = await asked();
    const sent = await Promise.all(Array.from({ length: 8 }, () => post(`/f/${id}`, { _code: 'send' })));
    expect(sent.map(({ status }) => status).sort((left, right) => left - right)).toEqual([
      ...Array(3).fill(303),
      ...Array(5).fill(429),
    ]);
    const codes = await codesTo(ada, CODES_A_SESSION);
    expect(new Set(codes).size).toBe(CODES_A_SESSION);

    const other = await asked({ metadata: { second: true } });
    const browser = cookieIn(await post(`/f/${other.id}`, { _code: 'send' }));
    const code = (await codesTo(ada, CODES_A_SESSION + 1)).at(-1) ?? '';
    const wrong = code === '000000' ? '000001' : '000000';
    for (let tries = 0; tries < CODE_TRIES; tries += 1) {
      expect((await post(`/f/${other.id}`, { _code: 'give', code: wrong }, browser)).status).toBe(422);
    }
    expect((await post(`/f/${other.id}`, { _code: 'give', code }, browser)).status).toBe(422);
  });

  it('mails ten codes a day to a mailbox, five of them for one network', async () => {
    const sessions = [
      await asked({ metadata: { n: 1 } }),
      await asked({ metadata: { n: 2 } }),
      await asked({ metadata: { n: 3 } }),
    ];
    const statuses = [];
    const send = (path: string, client: string) =>
      fetch(service.url + path, {
        method: 'POST',
        headers: { origin: service.url, 'x-forwarded-for': client },
        body: new URLSearchParams({ _code: 'send', email: ada }),
        redirect: 'manual',
      });
    for (const { id } of [...sessions, ...sessions]) {
      statuses.push((await send(`/f/${id}`, `203.0.113.${statuses.length}`)).status);
    }
    // Codes of forms' own pages count, too.
    const { id } = await form();
    for (let n = 0; n < 6; n += 1) statuses.push((await send(`/f/${id}`, `198.51.100.${n}`)).status);
    statuses.push((await send(`/f/${id}`, '192.0.2.1')).status);

    expect(statuses).toEqual([...Array(5).fill(303), 429, ...Array(5).fill(303), 429, 429]);
    expect(await codesTo(ada, 10)).toHaveLength(10);
  });

  it('takes one submission of each mailbox on a form’s own page, also of two at once', async () => {
    const { id } = await form();
    const first = await givenCode(`/f/${id}`, ada);
    const second = await givenCode(`/f/${id}`, ada.replace('@', '+again@').toUpperCase());
    const both = await Promise.all([
      answer(`/f/${id}`, { name: 'Ada' }, first),
      answer(`/f/${id}`, { name: 'Ada again' }, second),
    ]);
    const late = await answer(`/f/${id}`, { name: 'Late' }, first);
    const { json } = await service.get(`/v1/forms/${id}/submissions`);

    expect(both.map(({ status }) => status).sort((left, right) => left - right)).toEqual([200, 409]);
    expect(late.status).toBe(409);
    const pages = await Promise.all(both.map((reply) => reply.text()));
    expect(pages.join()).toContain('You can close this page');
    expect(pages.join()).not.toContain('Send another response');
    expect([json.error, json.submissions?.length]).toEqual([undefined, 1]);
    expect(json.submissions[0].respondent).toMatchObject({ method: 'email_code' });
    expect((await service.get(`/f/${id}`, { key: null, headers: { cookie: first } })).status).toBe(409);
  });

  it('erases who answered, and who is to answer', async () => {
    const open = await asked({ metadata: { erased: true } });
    const { id } = await form();
    const browser = await givenCode(`/f/${id}`, ada);
    await answer(`/f/${id}`, { name: 'Ada' }, browser);
    const erased = await erase(ada);

    expect(erased).toEqual({ submissions: 1, sessions: 1 });
    expect((await service.get(`/v1/sessions/${open.id}`)).status).toBe(404);
    const rows = await service.database.select('select 1 as one from mailed_links where address = $1', [ada]);
    expect(rows).toEqual([]);
  });

  // The database has no part in what follows.
  if (!oneEngine('pglite').includes(engine)) return;

  it('shows, keeps, takes and ends nothing without a key until the code was given, on any protocol', async () => {
    const session = await asked();
    const { id: sessionId } = session;
    const hosted = service.client(HostedService, 'connect', null);
    const sessions = service.client(SessionsService, 'grpc', null);
    const uploads = service.client(UploadsService, 'grpc', null);
    const post = (goal: HostedGoal) => () => hosted.postHosted({ sessionId, goal, page: 1 });
    const upload = { target: { case: 'sessionId' as const, value: sessionId }, fieldId: 'paper' };
    async function* parts() {
      yield { ...upload, content: Buffer.from('A paper') };
    }
    const calls = [
      post(HostedGoal.FORWARD),
      post(HostedGoal.SAVE),
      post(HostedGoal.RESTART),
      post(HostedGoal.DECLINE),
      () => sessions.getSession({ sessionId }),
      () => sessions.awaitSession({ sessionId, timeout: { seconds: 1n } }),
      () => sessions.updateSession({ sessionId, prefill: { secret: 'Eve' } }),
      () => sessions.submitSession({ sessionId, answers: { secret: 'Eve' } }),
      () => uploads.createUpload({ ...upload, content: Buffer.from('A paper') }),
      () => uploads.uploadFile(parts()),
    ];
    for (const call of calls) await expect(call()).rejects.toThrow(/Only the page accepts answers/);
    const json = { accept: 'application/json' };
    const replies = [
      await service.get(`/f/${sessionId}`, { key: null }),
      await service.get(`/s/${sessionId}?lang=de`, { key: null }),
      await service.get(`/f/${sessionId}`, { key: null, headers: json }),
      await service.post(`/f/${sessionId}`, new URLSearchParams({ secret: 'Eve' }).toString(), {
        key: null,
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
      }),
      await service.post(`/f/${sessionId}/uploads?field=paper&filename=a.txt`, 'A paper', { key: null }),
      await service.get(`/v1/sessions/${sessionId}`, { key: null }),
      await service.get(`/v1/sessions/${sessionId}?wait=1`, { key: null }),
      await service.patch(`/v1/sessions/${sessionId}`, { prefill: { secret: 'Eve' } }, { key: null }),
      await service.post(`/v1/sessions/${sessionId}/submit`, { answers: { secret: 'Eve' } }, { key: null }),
      await service.post(`/api/sessions/${sessionId}/uploads?field=paper`, 'A paper', { key: null }),
    ];
    expect(replies.map(({ status }) => status)).toEqual([
      200,
      200,
      ...Array.from({ length: 7 }, () => 401),
      expect.any(Number),
    ]);
    const read = await hosted.getHosted({ sessionId });
    expect(read.session?.state).toBe(HostedState.CODE_NEEDED);

    const shown = [...replies.map(({ text }) => text), JSON.stringify(read.session)].join();
    expect(shown).not.toMatch(/ada-|for Ada|secret of|A paper|Prefilled/i);
    expect((await service.get(`/v1/sessions/${sessionId}`)).json.session).toMatchObject({
      status: 'open',
      opened_at: null,
      prefill: { secret: 'Prefilled for Ada' },
      respondent: { email: ada },
    });
  });

  it('shows and ends nothing to programs without a key, by tools of MCP and by streams', async () => {
    const session = await asked();
    const { id: sessionId } = session;
    await using agent = await startAgent(service, { key: null });
    const submissions = service.client(SubmissionsService, 'grpc', null);
    const sessions = service.client(SessionsService, 'grpc', null);
    const stream = async () => {
      for await (const message of submissions.watchSubmissions({ formId: session.form_id })) return message;
      return undefined;
    };
    const tools = [
      await agent.use('get_session', { session_id: sessionId }),
      await agent.use('wait_for_session', { session_id: sessionId, timeout: 1 }),
      await agent.use('submit_answers', { session_id: sessionId, answers: { secret: 'Eve' } }),
    ];
    const { tools: offered } = await agent.client.listTools();
    const paths = [
      ['GET', `/v1/sessions/${sessionId}/agent-schema`],
      ['POST', `/v1/sessions/${sessionId}/cancel`],
      ['POST', `/v1/sessions/${sessionId}/decline`],
      ['GET', `/v1/forms/${session.form_id}/submissions/stream`],
      ['GET', `/v1/forms/${session.form_id}/sessions`],
    ] as const;
    const replies = await Promise.all(
      paths.map(([method, path]) => service.call(method, path, undefined, anyone)),
    );

    expect(tools.map(({ failure }) => failure.reason)).toEqual(tools.map(() => 'code_needed'));
    expect(offered.map(({ name }) => name)).not.toContain('cancel_session');
    await expect(stream()).rejects.toThrow(/key/);
    await expect(sessions.getSessionAgentSchema({ sessionId })).rejects.toThrow(/key/);
    await expect(sessions.cancelSession({ sessionId })).rejects.toThrow(/key/);
    await expect(sessions.declineSession({ sessionId })).rejects.toThrow(/key/);
    expect(replies.map((reply) => deniedAs(reply))).toEqual(
      replies.map(() => [401, 'unauthorized', 'missing_key']),
    );
    const shown = [...tools.flatMap(({ texts }) => texts), ...replies.map(({ text }) => text)].join();
    expect(shown).not.toMatch(/ada-|for Ada|secret of|Prefilled/i);
    expect((await service.get(`/v1/sessions/${sessionId}`)).json.session).toMatchObject({
      status: 'open',
      prefill: { secret: 'Prefilled for Ada' },
    });
  });

  it('keeps who answered with the code of their mailbox, in the browser that asked for it', async () => {
    const session = await asked();
    const browser = await givenCode(`/f/${session.id}`);
    const page = await service.get(`/f/${session.id}`, { key: null, headers: { cookie: browser } });
    const forwarded = await service.get(`/f/${session.id}`, { key: null });
    await answer(`/f/${session.id}`, { secret: 'Of Ada' }, browser);

    const { json } = await service.get(`/v1/sessions/${session.id}`);
    expect([page.text.includes('A secret of Ada?'), forwarded.text.includes('A secret of Ada?')]).toEqual([
      true,
      false,
    ]);
    expect(json.submission).toMatchObject({
      answers: { secret: 'Of Ada' },
      respondent: { method: 'email_code', email: ada, verified_at: expect.any(String) },
      provenance: { secret: { by: 'human', verified: true } },
    });
    const { submission } = await service
      .client(SubmissionsService)
      .getSubmission({ submissionId: json.session.submission_id });
    expect([submission?.respondent?.email, submission?.provenance.secret?.verified]).toEqual([ada, true]);
  });

  it('says of what a key submits that no respondent is known', async () => {
    const session = await asked();
    const sent = await service.post(`/v1/sessions/${session.id}/submit`, { answers: { secret: 'By a key' } });

    expect([sent.status, sent.json.submission.respondent]).toEqual([201, null]);
    expect(sent.json.submission.provenance.secret.verified).toBeUndefined();
  });

  it('needs a key with sessions:notify, and an address', async () => {
    const weak = await service.givenKey(['sessions:write', 'forms:read']);
    const body = { definition, respondent: { email: ada } };

    expect(deniedAs(await service.post('/v1/sessions', body, { key: weak }))).toEqual([
      401,
      'unauthorized',
      'insufficient_scope',
    ]);
    expect(deniedAs(await service.post('/v1/sessions', body, { key: null }))).toEqual([
      401,
      'unauthorized',
      'missing_key',
    ]);
    expect(
      refusedAs(await service.post('/v1/sessions', { definition, respondent: { email: 'Ada' } })),
    ).toEqual([['respondent.email', 'invalid_string']]);
  });

  it('takes no code in another browser, none that was replaced, and none after ten minutes', async () => {
    const { id } = await asked();
    const browser = cookieIn(await post(`/f/${id}`, { _code: 'send' }));
    const [first = ''] = await codesTo(ada, 1);
    await service.database.execute(
      `update mailed_links set expires_at = expires_at - interval '601 seconds' where session_id = $1`,
      [id],
    );
    expect((await post(`/f/${id}`, { _code: 'give', code: first }, browser)).status).toBe(422);

    await post(`/f/${id}`, { _code: 'send' }, browser);
    const [, second = ''] = await codesTo(ada, 2);
    expect(
      (await post(`/f/${id}`, { _code: 'give', code: second }, `respondent=${'x'.repeat(43)}`)).status,
    ).toBe(422);
    expect((await post(`/f/${id}`, { _code: 'give', code: second }, browser)).status).toBe(303);
  });

  it('mails ten codes an hour of one client on forms’ own pages, and 500 a day of one form', async () => {
    await using limited = await startService({
      engine,
      env: { SMTP_URL: mails.url, TRUST_PROXY: '127.0.0.0/8', RATE_LIMIT: 'on' },
    });
    const { id } = await limited.givenPublishedForm({ settings: { onePerRespondent: true } });
    const send = (email: string, client: string) =>
      fetch(`${limited.url}/f/${id}`, {
        method: 'POST',
        headers: { origin: limited.url, 'x-forwarded-for': client },
        body: new URLSearchParams({ _code: 'send', email }),
        redirect: 'manual',
      });
    const byClient = [];
    for (let n = 0; n < 11; n += 1) byClient.push(await send(`${n}-${ada}`, '203.0.113.1'));
    await limited.database.execute(
      `update mail_allowances set delivery_ids = array(select 'dlv_' || n from generate_series(1, 499) as n)
       where holder = $1`,
      [id],
    );
    const byForm = [await send(`499-${ada}`, '198.51.100.1'), await send(`500-${ada}`, '192.0.2.1')];

    expect(byClient.map(({ status }) => status)).toEqual([...Array(10).fill(303), 429]);
    expect(Number(byClient.at(-1)?.headers.get('retry-after'))).toBeGreaterThan(60);
    expect(byForm.map(({ status }) => status)).toEqual([303, 429]);
  });

  it('says what to do to a person who has stopped mail, and the same to everybody', async () => {
    const session = await asked();
    const { id } = await form();
    await stopMail(service.database, { address: ada, formId: '', scope: 'all' });
    const texts = [];
    for (const [path, email] of [
      [`/f/${session.id}`, ''],
      [`/f/${id}`, ada],
      [`/f/${id}`, `nobody-${ada}`],
    ] as const) {
      const cookie = cookieIn(await post(path, { _code: 'send', email }));
      const { text } = await service.get(path, { key: null, headers: { cookie } });
      texts.push(/<p class="note">([^<]*)/.exec(text)?.[1]);
    }
    await codesTo(`nobody-${ada}`, 1);

    expect(texts).toEqual(Array(3).fill(expect.stringContaining('If you stopped all emails')));
    expect(new Set(texts).size).toBe(1);
    expect(codesIn(ada)).toEqual([]);
  });

  it('refuses posts without a code and names the page, and takes what a key submits', async () => {
    const { id } = await form();
    const answers = { name: 'Eve' };
    const byJson = await service.post(`/api/forms/${id}/submissions`, { answers }, { key: null });
    const byManaged = await service.post(`/v1/forms/${id}/submissions`, { answers }, { key: null });
    const byHtml = await service.post(
      `/api/forms/${id}/submissions`,
      new URLSearchParams(answers).toString(),
      {
        key: null,
        headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'text/html' },
      },
    );
    const bySession = await service.post(`/v1/forms/${id}/sessions`, {}, { key: null });
    const byUpload = await service.post(`/api/forms/${id}/uploads?field=paper`, 'A paper', {
      key: null,
      headers: { 'content-type': 'application/octet-stream' },
    });
    const byKey = await service.post(`/v1/forms/${id}/submissions`, { answers });

    expect([byJson, byManaged, byHtml, bySession, byUpload].map(({ status }) => status)).toEqual(
      Array(5).fill(401),
    );
    expect(byJson.json.error).toMatchObject({
      reason: 'code_needed',
      message: expect.stringContaining(`/f/${id}`),
    });
    expect(byHtml.text).toContain(`/f/${id}"`);
    expect(byKey.status).toBe(201);
  });

  it('refuses the setting for forms made without a key', async () => {
    const refused = await service.post(
      '/api/forms/create',
      {
        name: 'Keyless',
        slug: 'keyless',
        fields: [{ id: 'name', type: 'text' }],
        delivery: { type: 'email' },
        settings: { onePerRespondent: true },
      },
      { key: null },
    );

    expect(refusedAs(refused)).toEqual([['settings.onePerRespondent', 'custom']]);
  });

  it('shows a visitor’s answers to nobody else, not by the session’s own address', async () => {
    const { id } = await form();
    const browser = await givenCode(`/f/${id}`, ada);
    const saved = await post(
      `/f/${id}`,
      { name: 'Kept for Ada', _shown: 'name', _go: 'save' },
      browser,
      'application/json',
    );
    const { session_id: sessionId } = (await saved.json()) as { session_id: string };
    const byAddress = await service.get(`/f/${sessionId}`, { key: null });
    const byRest = await service.get(`/v1/sessions/${sessionId}`, { key: null });

    expect([byAddress.text.includes('Kept'), byRest.status]).toEqual([false, 404]);
  });

  /** Erases a value, by as many calls as it takes. Returns how many rows went. */
  async function erase(value: string) {
    const erased = { submissions: 0, sessions: 0 };
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const { json } = await service.post('/v1/erasures', { value, ...(cursor !== undefined && { cursor }) });
      erased.submissions += Number(json.erased_submissions);
      erased.sessions += Number(json.erased_sessions);
      cursor = json.next_cursor;
    }
    return erased;
  }

  /** Gets a code by mail and gives it. Returns the browser's cookie. */
  async function givenCode(path: string, email = ''): Promise<string> {
    const to = (email || ada).toLowerCase();
    const before = codesIn(to).length;
    const sent = await post(path, { _code: 'send', email });
    expect(sent.status).toBe(303);
    const code = (await codesTo(to, before + 1)).at(-1) ?? '';
    const browser = cookieIn(sent);
    expect((await post(path, { _code: 'give', code }, browser)).status).toBe(303);
    return browser;
  }

  /** Posts a page as it was read. */
  async function answer(path: string, inputs: Record<string, string>, browser: string) {
    const page = await service.get(path, { key: null, headers: { cookie: browser } });
    const issued = /name="_issued" value="([^"]+)"/.exec(page.text)?.[1] ?? '';
    return post(
      path,
      { ...inputs, _issued: issued, _shown: Object.keys(inputs).join(' '), _page: '1' },
      browser,
    );
  }

  function post(path: string, inputs: Record<string, string>, cookie = '', accept = 'text/html') {
    const headers = { origin: service.url, accept, ...(cookie && { cookie }) };
    return fetch(service.url + path, {
      method: 'POST',
      headers,
      body: new URLSearchParams(inputs),
      redirect: 'manual',
    });
  }

  function cookieIn(response: Response): string {
    return (
      response.headers
        .getSetCookie()
        .find((cookie) => cookie.startsWith('respondent='))
        ?.split(';')[0] ?? ''
    );
  }

  function codesIn(to: string): string[] {
    return mails.mails
      .filter(({ recipients }) => recipients.some((each) => each.toLowerCase() === to))
      .flatMap(({ subject }) => /^(\d{6}) /.exec(subject ?? '')?.[1] ?? []);
  }

  async function codesTo(to: string, wanted: number): Promise<string[]> {
    await until(
      () => codesIn(to).length >= wanted,
      15_000,
      () => `${codesIn(to).length} of ${wanted} codes`,
    );
    return codesIn(to);
  }
});
