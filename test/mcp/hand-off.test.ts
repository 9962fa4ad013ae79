import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { engines } from '../support/database.ts';
import { forged } from '../support/forged.ts';
import { startService, type TestService } from '../support/server.ts';
import { startAgent } from './agent.ts';

const fields = [
  { id: 'order', type: 'text', required: true, answeredBy: 'agent' },
  { id: 'consent', type: 'boolean' },
];

/** What a client says that can show links. */
const links = { capabilities: { elicitation: { url: {} } } };

describe.each(engines)('ask_person on %s', (engine) => {
  let service: TestService;
  let formId: string;
  beforeAll(async () => {
    service = await startService({ engine });
    formId = (await service.givenPublishedForm({ fields })).id;
  }, 60_000);
  afterAll(() => service?.[Symbol.asyncDispose]());

  const submit = (id: string) => service.post(`/v1/sessions/${id}/submit`, { answers: { consent: true } });
  const args = () => ({ form_id: formId, prefill: { order: '7' }, metadata: { run: 1 } });

  it.each([
    ['of the revision before', { versionNegotiation: { mode: 'legacy' as const } }],
    ['without elicitation', {}],
    ['with elicitation by form alone', { capabilities: { elicitation: { form: {} } } }],
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

  it('shows the link and waits for the answers of who agreed to open it', async () => {
    await using agent = await startAgent(service, links);
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

  it('says that the session still waits when the person declines, and how it ended else', async () => {
    await using agent = await startAgent(service, links);
    let meanwhile = async (_id: string) => {};
    agent.client.setRequestHandler('elicitation/create', async ({ params }) => {
      await meanwhile(idIn('url' in params ? params.url : ''));
      return { action: 'decline' };
    });

    const declined = await agent.use('ask_person', args());
    const { session_id } = declined.facts;
    const waiting = agent.use('wait_for_session', { session_id, timeout: 1 });
    meanwhile = async (id) => void (await agent.use('cancel_session', { session_id: id }));
    const cancelled = await agent.use('ask_person', args());
    meanwhile = expire;
    const expired = await agent.use('ask_person', args());
    const waited = await waiting;

    expect(declined.facts.status).toBe('open');
    expect(declined.facts.next).toContain('did not open the link');
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
