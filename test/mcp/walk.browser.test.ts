import { join } from 'node:path';
import { createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { devices } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { SessionStatus, SessionsService } from '../../gen/headlessforms/v1/sessions_pb.js';
import { startBrowser } from '../support/browser.ts';
import { noBrowser } from '../support/chromium.ts';
import { createServerDatabase } from '../support/database.ts';
import { openEventSource } from '../support/event-source.ts';
import { startProcess } from '../support/processes.ts';
import { startService } from '../support/server.ts';
import { temporaryFolder } from '../support/spawn.ts';
import { startAgent } from './agent.ts';

const definition = {
  name: 'Return',
  slug: 'return',
  fields: [
    { id: 'order', type: 'text', required: true, answeredBy: 'agent' },
    { id: 'reason', type: 'text', required: true },
    { id: 'consent', type: 'checkbox', required: true, answeredBy: 'human' },
  ],
  delivery: { type: 'email' },
};

const phone = { ...devices['iPhone SE'], viewport: { width: 320, height: 640 } };

describe.skipIf(noBrowser)('an agent and a person', () => {
  it.each([
    ['one process with the embedded database', startOne],
    ['two processes on PostgreSQL', startTwo],
  ])('fill in a form together, with %s', async (_name, start) => {
    await using owned = new AsyncDisposableStack();
    const { agentAt, pagesAt, grpcUrl, key } = await start(owned);
    const authorization = `Bearer ${key}`;
    const browser = owned.use(await startBrowser({ url: pagesAt }));
    const agent = owned.use(
      await startAgent({ url: agentAt, key }, { capabilities: { elicitation: { url: {} } } }),
    );

    const { facts: made } = await agent.use('create_form', { definition });
    const { activation_token } = made;
    const form_id = made.form.id;
    await agent.use('activate_form', { form_id, activation_token, email: 'owner@example.com' });
    const known = { order: 'A-7', reason: 'It broke' };
    const refused = await agent.use('submit_answers', { form_id, answers: { ...known, consent: true } });
    const stream = owned.use(
      await openEventSource(`${agentAt}/v1/forms/${form_id}/submissions/stream`, { authorization }),
    );
    const heard: Promise<unknown>[] = [];
    agent.client.setRequestHandler('elicitation/create', async ({ params }) => {
      const { pathname } = new URL('url' in params ? params.url : '');
      const sessionId = pathname.split('/').at(-1) ?? '';
      const byRest = fetch(`${agentAt}/v1/sessions/${sessionId}?wait=60`, { headers: { authorization } });
      const sessions = createClient(SessionsService, createGrpcTransport({ baseUrl: grpcUrl }));
      heard.push(
        byRest.then(async (reply) => JSON.parse(await reply.text()).session.status),
        sessions
          .awaitSession({ sessionId }, { headers: { authorization } })
          .then(({ session }) => session?.status),
        agent.use('wait_for_session', { session_id: sessionId }).then(({ facts }) => facts.status),
      );
      const page = await browser.open(pathname, phone);
      expect(await page.inputValue('[name=reason]')).toBe(known.reason);
      expect(await page.locator('[name=order]').count()).toBe(0);
      await page.check('[name=consent]');
      await page.click('button[value=forward]');
      await page.waitForSelector('.copy');
      return { action: 'accept' };
    });

    const { facts: done } = await agent.use('ask_person', { form_id, prefill: known });
    const [event] = await stream.expectEvents(1);

    expect(refused.failure.problems).toEqual([
      {
        field: 'answers.consent',
        rule: 'custom',
        expected: 'This field must be answered by a person',
        received: 'true',
      },
    ]);
    expect(refused.failure.next).toContain('ask_person');
    expect(done).toMatchObject({
      status: 'submitted',
      answers: { ...known, consent: true },
      provenance: { order: { by: 'prefill' }, reason: { by: 'prefill' }, consent: { by: 'human' } },
    });
    expect(await Promise.all(heard)).toEqual(['submitted', SessionStatus.SUBMITTED, 'submitted']);
    expect(JSON.parse(event?.data ?? '').submission.id).toBe(done.submission_id);
    await browser.expectNoProblems();
  });
});

async function startOne(owned: AsyncDisposableStack): Promise<Places> {
  const { url, grpcUrl, key } = owned.use(await startService());
  return { agentAt: url, pagesAt: url, grpcUrl, key };
}

/** The agent calls one of them, and the person opens the page of the other. */
async function startTwo(owned: AsyncDisposableStack): Promise<Places> {
  const key = 'a-key-for-the-walk-over-two-processes';
  const folder = owned.use(temporaryFolder());
  const { databaseUrl } = owned.use(await createServerDatabase());
  const [here, there] = await Promise.all(
    ['here', 'there'].map((name) =>
      startProcess(owned, { dataDir: join(folder.path, name), databaseUrl, key }),
    ),
  );
  if (here === undefined || there === undefined) throw new Error('Two processes were to start');
  return { agentAt: here.url, pagesAt: there.url, grpcUrl: here.grpcUrl, key };
}

/** Where an agent calls, and where a person opens the page. */
type Places = { agentAt: string; pagesAt: string; grpcUrl: string; key: string };
