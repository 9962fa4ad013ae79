import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { oneEngine } from '../support/database.ts';
import { forged } from '../support/forged.ts';
import { startReceiver } from '../support/receiver.ts';
import { startService, type TestService } from '../support/server.ts';
import { verifySignature } from '../support/verify-signature.ts';
import { startAgent } from './agent.ts';

const fields = [
  { id: 'order', type: 'text', required: true, answeredBy: 'agent' },
  { id: 'consent', type: 'boolean' },
];

/** What a client says that can show links. */
const links = { capabilities: { elicitation: { url: {} } } };

/** What a client says that can ask its user. The revisions before the one with modes of its own say no more. */
const forms = { capabilities: { elicitation: {} } };

/** The revision of 2026, and that of 2025-11-25. */
const eras = ['auto', 'legacy'] as const;

describe.each(oneEngine('pglite'))('ask_person on %s', (engine) => {
  let service: TestService;
  let formId: string;
  beforeAll(async () => {
    service = await startService({ engine });
    formId = (await service.givenPublishedForm({ fields })).id;
  });
  afterAll(() => service?.[Symbol.asyncDispose]());

  const submit = (id: string) => service.post(`/v1/sessions/${id}/submit`, { answers: { consent: true } });
  const args = () => ({ form_id: formId, prefill: { order: '7' }, metadata: { run: 1 } });

  it('asks a person once under a key: a reworded question is refused, and an ended session gives its answers', async () => {
    await using agent = await startAgent(service);
    const ask = (label: string) =>
      agent.use('ask_person', { questions: [{ id: 'ok', label }], idempotency_key: 'deploy 4.2' });

    const first = await ask('May we deploy?');
    const reworded = await ask('Deploy now?');
    await service.post(`/v1/sessions/${first.facts.session_id}/submit`, { answers: { ok: 'yes' } });
    const again = await ask('May we deploy?');

    expect(reworded.failure).toMatchObject({
      reason: 'conflict',
      session_id: first.facts.session_id,
      next: expect.stringContaining('get_session'),
    });
    expect(again.facts).toMatchObject({ session_id: first.facts.session_id, status: 'submitted' });
    expect(again.facts.answers).toEqual({ ok: 'yes' });
  });

  it.each([
    ['of the revision before', { versionNegotiation: { mode: 'legacy' as const } }],
    ['without elicitation', {}],
    [
      'before the revision that has links',
      {
        capabilities: { elicitation: { form: {}, url: {} } },
        versionNegotiation: { mode: 'legacy' as const },
        supportedProtocolVersions: ['2025-06-18'],
      },
    ],
  ])('gives clients %s the link, and the answers to those who wait', async (_name, options) => {
    await using agent = await startAgent(service, options);

    const asked = await agent.use('ask_person', args());
    const { session_id } = asked.facts;
    const left = await agent.use('get_session', { session_id, include_questions: true });
    const waiting = agent.use('wait_for_session', { session_id });
    await submit(session_id);
    const done = await waiting;
    const again = await agent.use('submit_answers', { session_id, answers: {} });

    expect(asked.facts).toMatchObject({ status: 'open', next: expect.stringContaining('wait_for_session') });
    expect(asked.facts.url).toMatch(new RegExp(`/f/${session_id}$`));
    expect(left.facts.questions).toEqual([expect.stringMatching(/^consent/)]);
    expect(done.facts).toMatchObject({
      status: 'submitted',
      answers: { order: '7', consent: true },
      provenance: { order: { by: 'prefill' }, consent: { by: 'api' } },
      untrusted: ['answers'],
    });
    expect(again.failure).toMatchObject({
      reason: 'conflict',
      submission_id: done.facts.submission_id,
      next: expect.stringContaining('get_submission'),
    });
  });

  it.each(eras)('shows the link and waits for the answers of who agreed to open it (%s)', async (mode) => {
    await using agent = await startAgent(service, { ...links, versionNegotiation: { mode } });
    const shown: unknown[] = [];
    agent.client.setRequestHandler('elicitation/create', async ({ params }) => {
      shown.push(params);
      await submit(idIn('url' in params ? params.url : ''));
      return { action: 'accept' };
    });

    const { facts } = await agent.use('ask_person', { ...args(), message: 'May we?' });

    expect(shown).toEqual([expect.objectContaining({ mode: 'url', message: 'May we?' })]);
    expect(facts).toMatchObject({ status: 'submitted', answers: { order: '7', consent: true } });
  });

  it.each(eras)('has the client ask its user what is left, and says that (%s)', async (mode) => {
    await using agent = await startAgent(service, { ...forms, versionNegotiation: { mode } });
    const shown: unknown[] = [];
    agent.client.setRequestHandler('elicitation/create', ({ params }) => {
      shown.push(params);
      return { action: 'accept', content: { consent: true } };
    });

    const { facts } = await agent.use('ask_person', { ...args(), message: 'May we?' });
    const { json: listed } = await service.get(
      `/v1/forms/${formId}/submissions?session_id=${facts.session_id}`,
    );

    expect(shown).toEqual([
      expect.objectContaining({
        message: 'May we?',
        requestedSchema: {
          type: 'object',
          properties: { consent: { type: 'boolean', title: 'Consent' } },
          required: [],
        },
      }),
    ]);
    expect(facts).toMatchObject({
      status: 'submitted',
      answers: { order: '7', consent: true },
      provenance: { order: { by: 'prefill' }, consent: { by: 'mcp_user' } },
    });
    expect(listed.submissions).toHaveLength(1);
  });

  it.each(eras)('declines the session where the user declines and may (%s)', async (mode) => {
    for (const modes of [forms, links]) {
      await using agent = await startAgent(service, { ...modes, versionNegotiation: { mode } });
      agent.client.setRequestHandler('elicitation/create', () => ({ action: 'decline' }));

      const { facts } = await agent.use('ask_person', { ...args(), allow_decline: true });
      const { json } = await service.get(`/v1/sessions/${facts.session_id}`);

      expect(facts).toMatchObject({
        status: 'declined',
        next: expect.stringContaining('do not assume consent'),
      });
      expect(json.session.status).toBe('declined');
    }
  });

  it.each<[string, object, { allow?: boolean; status: string; says: string }]>([
    ['a no', { action: 'decline' }, { status: 'declined', says: 'declined to answer' }],
    [
      'a no without the right to it',
      { action: 'decline' },
      { allow: false, status: 'open', says: 'declined' },
    ],
    [
      'a no with null',
      { action: 'decline', content: null },
      { status: 'declined', says: 'declined to answer' },
    ],
    ['a closed dialog', { action: 'cancel' }, { status: 'open', says: 'without an answer' }],
    [
      'a closed dialog with null',
      { action: 'cancel', content: null },
      { status: 'open', says: 'without an' },
    ],
    ['no content', { action: 'accept', content: null }, { status: 'open', says: 'do not fit' }],
    ['a wrong answer', { action: 'accept', content: { ok: 'x' } }, { status: 'open', says: 'do not fit' }],
    ['content of no kind', { action: 'accept', content: 'yes' }, { status: 'open', says: 'did not say' }],
    ['an unknown action', { action: 'perhaps' }, { status: 'open', says: 'did not say' }],
    ['nothing', {}, { status: 'open', says: 'did not say' }],
  ])(
    'says the same of %s in both eras, at once, and what it is for consent',
    async (_name, reaction, expected) => {
      const { allow = true, status, says } = expected;
      const ask = {
        questions: [{ id: 'ok', type: 'boolean', label: 'May we?', required: true }],
        allow_decline: allow,
      };

      for (const facts of [await askStateless(ask, reaction), await askOlder(ask, { result: reaction })]) {
        expect(facts).toMatchObject({ status, next: expect.stringContaining(says) });
        expect(facts.next).toContain('do not assume consent');
        expect(facts.next.includes('show the url')).toBe(status === 'open');
      }
    },
  );

  it('does not wait for a person whom the client could not ask', async () => {
    const ask = { questions: [{ id: 'ok', type: 'boolean', label: 'May we?' }] };

    const facts = await askOlder(ask, { error: { code: -32_603, message: 'no display' } });

    expect(facts).toMatchObject({ status: 'open', next: expect.stringContaining('could not ask') });
    expect(facts.next).toContain('do not assume consent');
  });

  it.each<[string, object[]]>([
    ['is personal', [{ id: 'pin', type: 'text', personal: true }]],
    ['only a person may answer', [{ id: 'yes', type: 'boolean', answeredBy: 'human' }]],
    ['is a file', [{ id: 'cv', type: 'file' }]],
    [
      'is asked only sometimes',
      [...fields, { id: 'why', type: 'text', visibleWhen: { field: 'consent', op: 'eq', value: false } }],
    ],
    ['is one of nine', Array.from({ length: 9 }, (_, index) => ({ id: `n${index}`, type: 'number' }))],
  ])('sends people to the page for what %s', async (_name, asked) => {
    const form = await service.givenPublishedForm({ fields: asked });
    for (const mode of eras) {
      const shown: unknown[] = [];
      await using both = await startAgent(service, {
        capabilities: { elicitation: { form: {}, url: {} } },
        versionNegotiation: { mode },
      });
      both.client.setRequestHandler('elicitation/create', async ({ params }) => {
        shown.push(params.mode);
        await service.post(`/v1/sessions/${idIn('url' in params ? params.url : '')}/cancel`);
        return { action: 'accept' };
      });
      await using formsAlone = await startAgent(service, { ...forms, versionNegotiation: { mode } });

      const ask = { form_id: form.id, prefill: asked.length === 3 ? { order: '7' } : {} };
      const byLink = await both.use('ask_person', ask);
      const byText = await formsAlone.use('ask_person', ask);

      expect([mode, shown, byLink.facts.status]).toEqual([mode, ['url'], 'cancelled']);
      expect(byText.facts).toMatchObject({ status: 'open', next: expect.stringContaining('Show the url') });
    }
  });

  it('takes a response to what it has asked from the caller that it asked alone', async () => {
    const other = await service.givenKey(['*']);
    await using agent = await startAgent(service, { ...forms, versionNegotiation: { mode: 'legacy' } });
    const statuses: number[] = [];
    const respond = async (key: string, id: unknown) => {
      const body = { jsonrpc: '2.0', id, result: { action: 'accept', content: { consent: false } } };
      const { status } = await fetch(`${service.url}/mcp`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
      statuses.push(status);
    };
    agent.client.setRequestHandler('elicitation/create', async (_request, { mcpReq: { id } }) => {
      await respond(other, id);
      await respond(service.key, forged(String(id)));
      await respond(service.key, 'x');
      await respond(service.key, id);
      // It was answered already.
      return { action: 'accept', content: { consent: true } };
    });

    const { facts } = await agent.use('ask_person', args());

    expect(statuses).toEqual([400, 400, 400, 202]);
    expect(facts).toMatchObject({ status: 'submitted', answers: { consent: false } });
    expect(service.logged).toEqual([]);
  });

  it('has the session call back at its end, signed with the given secret', async () => {
    await using agent = await startAgent(service);
    await using receiver = await startReceiver();
    const secret = 'a secret of sixteen';

    const { facts } = await agent.use('ask_person', { ...args(), callback: { url: receiver.url, secret } });
    await submit(facts.session_id);
    const [call] = await receiver.expectRequests(1);

    const { body = '', headers } = call ?? {};
    const header = String(headers?.['x-service-signature']);
    expect(JSON.parse(body).data).toMatchObject({ sessionId: facts.session_id, outcome: 'submitted' });
    expect(verifySignature({ header, body, secret, now: Date.now() })).toBe(true);
    expect(JSON.stringify(facts)).not.toContain(secret);
  });

  it('says that the session still waits when the person declines, and how it ended else', async () => {
    await using agent = await startAgent(service, links);
    let meanwhile = async (_id: string) => {};
    agent.client.setRequestHandler('elicitation/create', async ({ params }) => {
      await meanwhile(idIn('url' in params ? params.url : ''));
      return { action: 'decline' };
    });

    const declined = await agent.use('ask_person', { ...args(), allow_decline: false });
    const { session_id } = declined.facts;
    const waiting = agent.use('wait_for_session', { session_id, timeout: 1 });
    meanwhile = async (id) => void (await agent.use('cancel_session', { session_id: id }));
    const cancelled = await agent.use('ask_person', args());
    meanwhile = expire;
    const expired = await agent.use('ask_person', args());
    const waited = await waiting;

    expect(declined.facts.status).toBe('open');
    expect(declined.facts.next).toContain('do not assume consent');
    expect(waited.facts).toMatchObject({ status: 'open', next: expect.stringContaining('wait_for_session') });
    expect(cancelled.facts).toMatchObject({
      status: 'cancelled',
      next: expect.stringContaining('cancelled'),
    });
    expect(expired.facts).toMatchObject({ status: 'expired', next: expect.stringContaining('ask_person') });
  });

  it('takes back only what it has made for the same key', async () => {
    await using agent = await startAgent(service, links);
    await using other = await startAgent(service, { ...links, key: await service.givenKey(['*']) });
    const request = { method: 'tools/call' as const, params: { name: 'ask_person', arguments: args() } };
    const first = await agent.client.request(request, { allowInputRequired: true });
    const { requestState = '' } = first as { requestState?: string };
    const repeat = (by: typeof agent, state: string) =>
      by.client
        .request(
          {
            ...request,
            params: {
              ...request.params,
              requestState: state,
              inputResponses: { answers: { action: 'decline' } },
            },
          },
          { allowInputRequired: true },
        )
        .then(() => 'taken', String);

    expect(requestState).not.toContain('sess_');
    expect(await repeat(agent, requestState)).toBe('taken');
    expect(await repeat(other, requestState)).toContain('Invalid or expired requestState');
    expect(await repeat(agent, forged(requestState))).toContain('Invalid or expired requestState');
    expect(service.logged).toEqual([]);
  });

  it('tells that the answers were deleted that a session ended with', async () => {
    await using agent = await startAgent(service);

    const { session_id } = (await agent.use('ask_person', args())).facts;
    await submit(session_id);
    const { submission_id } = (await agent.use('get_session', { session_id })).facts;
    await service.call('DELETE', `/v1/submissions/${submission_id}`);

    for (const tool of ['get_session', 'wait_for_session']) {
      const { facts } = await agent.use(tool, { session_id });
      expect(facts).toMatchObject({
        status: 'submitted',
        submission_id,
        next: expect.stringContaining('deleted'),
      });
    }
  });

  it('tells what a session ended with only to keys that may read answers', async () => {
    const key = await service.givenKey(['sessions:write', 'sessions:read']);
    await using agent = await startAgent(service, { key });

    const { facts: asked } = await agent.use('ask_person', args());
    await submit(asked.session_id);
    const { facts } = await agent.use('get_session', { session_id: asked.session_id });

    expect(facts).toMatchObject({ status: 'submitted', submission_id: expect.stringMatching(/^sub_/) });
    expect(facts.answers).toBeUndefined();
    expect(facts.next).toContain('submissions:read');
  });

  /** Asks as a client of 2026-07-28 does, whose person reacts so. */
  async function askStateless(ask: object, reaction: object) {
    await using agent = await startAgent(service, forms);
    const request = { method: 'tools/call' as const, params: { name: 'ask_person', arguments: { ...ask } } };
    const { requestState } = (await agent.client.request(request, { allowInputRequired: true })) as {
      requestState?: string;
    };
    const again = { ...request.params, requestState, inputResponses: { answers: reaction } };
    const done = await agent.client.request({ ...request, params: again }, { allowInputRequired: true });
    return (done as { structuredContent?: Parsed }).structuredContent;
  }

  /** Asks as a client of 2025-11-25 does, which sends this response. Its call may wait no longer than a second. */
  async function askOlder(ask: object, response: object) {
    const headers = {
      authorization: `Bearer ${service.key}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    };
    const send = (message: object, more: Record<string, string> = {}) =>
      fetch(`${service.url}/mcp`, {
        method: 'POST',
        headers: { ...headers, ...more },
        body: JSON.stringify({ jsonrpc: '2.0', ...message }),
        signal: AbortSignal.timeout(10_000),
      });
    const params = {
      protocolVersion: '2025-11-25',
      capabilities: { elicitation: {} },
      clientInfo: { name: 'a', version: '1' },
    };
    const begun = await send({ id: 1, method: 'initialize', params });
    const more = {
      'mcp-session-id': begun.headers.get('mcp-session-id') ?? '',
      'mcp-protocol-version': '2025-11-25',
    };
    const call = { id: 2, method: 'tools/call', params: { name: 'ask_person', arguments: ask } };
    const { body } = await send(call, more);
    let text = '';
    let answered = false;
    for await (const part of body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += part;
      const [asked, done] = [...text.matchAll(/^data: (.+)$/gm)].map(([, data = '']) => JSON.parse(data));
      if (done !== undefined) return done.result.structuredContent;
      if (asked === undefined || answered) continue;
      answered = true;
      expect((await send({ id: asked.id, ...response }, more)).status).toBe(202);
    }
    throw new Error(`The call ended without a result: ${text}`);
  }

  async function expire(id: string): Promise<void> {
    await service.database.execute(
      "update sessions set expires_at = now() - interval '1 second' where id = $1",
      [id],
    );
  }
});

function idIn(url: string): string {
  return url.split('/').at(-1) ?? '';
}

/** Tests look into results, and fail on what is not there. */
type Parsed = ReturnType<typeof JSON.parse>;
