import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FormFieldType } from '../../../gen/headlessforms/v1/definition_pb.js';
import { SessionOutcome, SessionsService } from '../../../gen/headlessforms/v1/sessions_pb.js';
import { startAgent } from '../../mcp/agent.ts';
import { startBrowser, type TestBrowser } from '../../support/browser.ts';
import { noBrowser } from '../../support/chromium.ts';
import { startMailServer } from '../../support/mail-server.ts';
import { startReceiver } from '../../support/receiver.ts';
import { startService, type TestService } from '../../support/server.ts';
import { freePort } from '../../support/spawn.ts';
import { until } from '../../support/until.ts';

const script = join(import.meta.dirname, '../../../examples/agents/ask.mjs');
const label = 'May I deploy 4.2?';
const questions = [{ id: 'yes', label, type: 'boolean', required: true }];

/** What each asker learns, however it asks. */
const learned = { outcome: 'submitted', answers: { yes: true } };

describe.skipIf(noBrowser)('who asks a person', () => {
  const opened = new AsyncDisposableStack();
  let service: TestService;
  let mails: Awaited<ReturnType<typeof startMailServer>>;
  let browser: TestBrowser;
  beforeAll(async () => {
    mails = opened.use(await startMailServer());
    const WEBHOOK_RETRY_SCHEDULE = Array(50).fill('0.2').join();
    service = opened.use(await startService({ env: { SMTP_URL: mails.url, WEBHOOK_RETRY_SCHEDULE } }));
    browser = opened.use(await startBrowser(service));
  });
  afterAll(() => opened.disposeAsync());

  const mailsTo = (email: string) => mails.mails.filter(({ recipients }) => recipients.includes(email));

  /** A person who answers in Chromium by the link of a reminder. */
  async function answerReminder(email: string): Promise<void> {
    await until(() => mailsTo(email).length === 1);
    const later = 'receiver = $1 and due_at > now()';
    await until(async () => {
      const rows = await service.database.select(`select from delivery_queue where ${later}`, [email]);
      return rows.length === 1;
    });
    await service.database.execute(`update delivery_queue set due_at = now() where ${later}`, [email]);
    const [, reminder] = await until(() => mailsTo(email).length === 2 && mailsTo(email));
    expect(reminder?.subject).toMatch(/^Reminder: /);
    const path = /\/f\/sess_\w+/.exec(reminder?.text ?? '')?.[0];
    const page = await browser.open(path ?? '');
    await page.check('input[value=true]');
    await page.click('form:not(.decline form) button[value=forward]');
    await page.waitForSelector('h1.done');
  }

  const notifyOf = (email: string) => ({ email, remind_after: [3600] });

  it('by REST, in a few lines that are killed and started again, is called back', async () => {
    const email = 'rest@example.com';
    const PORT = String(await freePort());
    const { url: URL, key: KEY } = service;
    const start = () =>
      spawn(process.execPath, [script], {
        env: { URL, KEY, EMAIL: email, PORT },
        stdio: ['ignore', 'pipe', 'inherit'],
      });
    using first = ended(start());
    await until(() => mailsTo(email).length === 1);
    first.child.kill('SIGKILL');
    await once(first.child, 'exit');
    using second = ended(start());
    await until(() => isOpen(PORT));

    await answerReminder(email);

    expect((await text(second.child.stdout)).trim()).toBe('submitted true');
    expect(await text(first.child.stdout)).toBe('');
    const asked = await service.database.select(`select id from sessions where notify->>'email' = $1`, [
      email,
    ]);
    const { json } = await service.get(`/v1/sessions/${String(asked[0]?.id)}`);
    expect([asked.length, json.session.outcome, json.submission.answers]).toEqual([
      1,
      ...Object.values(learned),
    ]);
  });

  it('finds these few lines in the documents', () => {
    const lines = readFileSync(script, 'utf8')
      .split('\n')
      .filter((line) => /^[^/\s]/.test(line));
    const document = readFileSync(join(script, '../../../docs/agents.md'), 'utf8');

    expect(lines.filter((line) => !line.startsWith('import')).length).toBeLessThanOrEqual(13);
    expect(lines.filter((line) => !document.includes(line))).toEqual([]);
  });

  it('by gRPC is called back as soon as it is there again', async () => {
    const email = 'grpc@example.com';
    const sessions = service.client(SessionsService, 'grpc');
    const port = await freePort();
    const { session } = await sessions.createSession({
      subject: {
        case: 'definition',
        value: { fields: [{ id: 'yes', label, type: FormFieldType.BOOLEAN, required: true }] },
      },
      notify: { email, remindAfter: [{ seconds: 3600n }] },
      callback: { url: `http://127.0.0.1:${port}/resume` },
      allowDecline: true,
    });
    const sessionId = session?.id ?? '';
    await answerReminder(email);
    await until(async () => {
      const [row] = await service.database.select(
        `select attempt_count from delivery_queue where kind = 'session.ended'`,
      );
      return Number(row?.attempt_count) > 0;
    });
    await using receiver = await startReceiver(undefined, port);
    const [callback] = await receiver.expectRequests(1);
    const { session: after, submission } = await sessions.awaitSession({ sessionId });

    expect(JSON.parse(callback?.body ?? '').data).toMatchObject({ sessionId, ...learned });
    expect([after?.outcome, submission?.answers]).toEqual([SessionOutcome.SUBMITTED, learned.answers]);
  });

  it('by MCP, with a client that shows links, one that asks its user, and one that does neither', async () => {
    const modes = { url: { url: {} }, form: { form: {} }, plain: undefined };
    const found: Record<string, unknown> = {};
    for (const [mode, elicitation] of Object.entries(modes)) {
      const email = `${mode}@example.com`;
      const capabilities = elicitation === undefined ? {} : { elicitation };
      await using agent = await startAgent(service, { capabilities });
      if (elicitation !== undefined) {
        agent.client.setRequestHandler('elicitation/create', async () => {
          if (mode === 'url') await answerReminder(email);
          return mode === 'url' ? { action: 'accept' } : { action: 'accept', content: { yes: true } };
        });
      }
      const { facts: asked } = await agent.use('ask_person', { questions, notify: notifyOf(email) });
      if (mode === 'plain') await answerReminder(email);
      const { facts } = await agent.use('wait_for_session', { session_id: asked.session_id });
      const { outcome, answers } = facts;
      found[mode] = { outcome, answers };
    }

    expect(found).toEqual({ url: learned, form: learned, plain: learned });
  });
});

/** A process that ends with its scope. */
function ended(child: Asker): { child: Asker } & Disposable {
  return { child, [Symbol.dispose]: () => void child.kill('SIGKILL') };
}

/** Whether somebody listens, who gets no request by this. */
function isOpen(port: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(Number(port), '127.0.0.1');
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}

type Asker = ChildProcessByStdio<null, Readable, null>;
