import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { type Database, openDatabase } from '../../src/store/database/database.ts';
import { givenEmbeddedDatabase, openTestDatabase } from '../support/database.ts';
import {
  deliveredByWebhook,
  endLeases,
  givenForm,
  givenSubmissions,
  givenWebhook,
  startDelivery,
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
