import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { newSessionId } from '../../src/domain/ids.ts';
import { SecretBox } from '../../src/domain/secrets/secret-key.ts';
import { type Database, openDatabase } from '../../src/store/database/database.ts';
import { callbackEvent } from '../../src/store/deliveries/enqueue.ts';
import { insertSession } from '../../src/store/sessions/sessions.ts';
import { createSubmissionWriter } from '../../src/store/submissions/submission-writer.ts';
import { givenEmbeddedDatabase, openTestDatabase } from '../support/database.ts';
import {
  aSubmissionTo,
  deliveredByWebhook,
  endLeases,
  givenForm,
  givenSubmissions,
  givenWebhook,
  startDelivery,
  testKey,
} from '../support/delivery.ts';
import { startReceiver } from '../support/receiver.ts';
import { temporaryFolder } from '../support/spawn.ts';
import { until } from '../support/until.ts';

describe('several processes', () => {
  it('deliver every event though one of them is killed again and again', { timeout: 600_000 }, async () => {
    await using database = await openTestDatabase('postgres');
    await using receiver = await startReceiver((_, response) => {
      setTimeout(() => response.writeHead(204).end(), Math.random() * 20);
    });
    const form = await givenForm(database, deliveredByWebhook);
    const webhook = await givenWebhook(database, form, { url: receiver.url });
    await using _survivor = startDelivery(database);

    const events: string[] = [];
    for (let kill = 0; kill < KILLS; kill++) {
      const child = startProcess(database.databaseUrl ?? '');
      await child.started;
      for (let group = 0; group < 5; group++) {
        events.push(
          ...(await givenSubmissions(
            database,
            form,
            Array.from({ length: 20 }, () => ({})),
          )),
        );
        await sleep(Math.random() * 60);
      }
      await child.kill('SIGKILL');
      await endLeases(database);
    }

    await until(
      async () => (await count(database, `status = 'delivered'`)) === events.length,
      60_000,
      () =>
        `${new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size} of ${events.length}`,
    );
    const arrived = receiver.received.map(({ headers }) => String(headers['webhook-id']));
    expect(new Set(arrived)).toEqual(new Set(events));
    expect(await count(database, `webhook_id = '${webhook.id}'`)).toBe(events.length);
  });

  it('deliver every event of an embedded database though each process is killed', {
    timeout: 600_000,
  }, async () => {
    using folder = temporaryFolder();
    await using receiver = await startReceiver((_, response) => {
      setTimeout(() => response.writeHead(204).end(), Math.random() * 20);
    });
    const opening = () => openDatabase({ dataDir: folder.path, log: console });
    await givenEmbeddedDatabase(folder.path);
    const prepared = await opening();
    const form = await givenForm(prepared, deliveredByWebhook);
    await givenWebhook(prepared, form, { url: receiver.url });
    await prepared.close();

    const events: string[] = [];
    for (let kill = 0; kill < EMBEDDED_KILLS; kill++) {
      const database = await opening();
      await endLeases(database);
      events.push(
        ...(await givenSubmissions(
          database,
          form,
          Array.from({ length: 50 }, () => ({})),
        )),
      );
      await database.close();
      const child = startProcess(folder.path);
      await child.started;
      const before = receiver.received.length;
      await until(() => receiver.received.length > before + Math.random() * 30);
      await child.kill('SIGKILL');
    }
    const database = await opening();
    await endLeases(database);
    const survivor = startDelivery(database);
    await until(async () => (await count(database, `status = 'delivered'`)) === events.length, 60_000);
    await survivor.stop(5_000);
    await database.close();

    const arrived = receiver.received.map(({ headers }) => String(headers['webhook-id']));
    expect(new Set(arrived)).toEqual(new Set(events));
  });

  it('call back each session with one outcome, though it ends twice at once and processes are killed', {
    timeout: 600_000,
  }, async () => {
    await using database = await openTestDatabase('postgres');
    await using receiver = await startReceiver((_, response) => {
      setTimeout(() => response.writeHead(Math.random() < 0.2 ? 503 : 204).end(), Math.random() * 20);
    });
    const form = await givenForm(database, deliveredByWebhook);
    const callbackSecret = new SecretBox(testKey).seal('the secret of a callback');
    const callback = { url: `${receiver.url}/resume`, origin: receiver.url };
    const writer = createSubmissionWriter(database);
    const submit = async (id: string) => {
      await sleep(Math.random() * 800);
      const row = aSubmissionTo(form, { name: 'Ada' });
      const outcome = { outcome: 'submitted', submissionId: row.id } as const;
      const event = callbackEvent({ id, formId: form.id, metadata: {} }, outcome, Date.now());
      await writer.write({ ...row, sessionId: id, callback: event });
    };

    const sessions: string[] = [];
    for (let kill = 0; kill < KILLS; kill++) {
      const children = [0, 1].map(() => startProcess(database.databaseUrl ?? ''));
      await Promise.all(children.map(({ started }) => started));
      const ids = Array.from({ length: 30 }, newSessionId);
      for (const id of ids) {
        const { projectId, id: formId, versionId } = form;
        const about = { id, projectId, formId, versionId, prefill: {}, metadata: {} };
        await insertSession(database, { ...about, callback, callbackSecret, expiresIn: 0.6 });
      }
      sessions.push(...ids);
      await Promise.all(ids.flatMap((id) => [submit(id), submit(id)]));
      await Promise.all(children.map((child) => child.kill('SIGKILL')));
      await endLeases(database);
    }
    await using _survivor = startDelivery(database, {
      settings: { schedule: Array.from({ length: 50 }, () => 0.05) },
    });
    const delivered = `kind = 'session.ended' and status = 'delivered'`;
    await until(async () => (await count(database, delivered)) === sessions.length, 60_000);

    const outcomes = await database.select(
      `select id, case when submitted_at is null then 'expired' else 'submitted' end as outcome from sessions`,
    );
    const bySession = Map.groupBy(receiver.received, ({ body }) => JSON.parse(body).data.sessionId);
    expect(new Set(outcomes.map(({ outcome }) => outcome)).size).toBe(2);
    expect(bySession.size).toBe(sessions.length);
    for (const { id, outcome } of outcomes) {
      const calls = bySession.get(id) ?? [];
      expect(new Set(calls.map(({ body }) => JSON.parse(body).data.outcome))).toEqual(new Set([outcome]));
      expect(new Set(calls.map(({ headers, body }) => `${String(headers['webhook-id'])} ${body}`)).size).toBe(
        1,
      );
    }
  });
});

/** As many as fit into some seconds; set TEST_KILLS for more. */
const KILLS = Number(process.env.TEST_KILLS ?? 5);

/** Each opens the embedded database twice, which takes seconds. */
const EMBEDDED_KILLS = Number(process.env.TEST_EMBEDDED_KILLS ?? 2);

function startProcess(place: string) {
  const script = join(import.meta.dirname, 'delivery-process.ts');
  const child = spawn(process.execPath, [script, place], { stdio: ['ignore', 'pipe', 'inherit'] });
  const exit = once(child, 'exit');
  return {
    started: once(child.stdout, 'data'),
    async kill(signal: NodeJS.Signals) {
      child.kill(signal);
      await exit;
    },
  };
}

async function count(database: Database, condition: string): Promise<number> {
  const [row] = await database.select(`select count(*)::int as n from deliveries where ${condition}`);
  return Number(row?.n);
}
