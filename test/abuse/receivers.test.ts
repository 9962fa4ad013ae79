import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { Database } from '../../src/store/database/database.ts';
import { engines, openTestDatabase } from '../support/database.ts';
import {
  deliveredByWebhook,
  givenForm,
  givenSubmissions,
  givenWebhook,
  startDelivery,
} from '../support/delivery.ts';
import { startReceiver } from '../support/receiver.ts';

/** How long another project's webhook may take at the 99th hundredth, in milliseconds. */
const LAG_MS = 1_000;

const EVENTS = 40;

describe.each(engines)('receivers that accept and never answer, on %s', (engine) => {
  it('do not delay the webhook of another project, though one project has a thousand', {
    timeout: 60_000,
  }, async () => {
    await using database = await openTestDatabase(engine);
    await using silent = await startSilent();
    const { projectId } = await givenForm(database);
    const forms = await Promise.all(
      Array.from({ length: 100 }, () => givenForm(database, { ...deliveredByWebhook, projectId })),
    );
    const tens = forms.flatMap((form) => Array.from({ length: 10 }, () => form));
    await Promise.all(
      tens.map((form) => givenWebhook(database, form, { url: silent.at(1), formId: form.id })),
    );

    const lags = await lagsBeside(database, {}, async (delivery) => {
      for (const form of forms) await givenSubmissions(database, form, [{}, {}, {}, {}], delivery);
    });

    expect(percentile(lags, 99)).toBeLessThan(LAG_MS);
  });

  it('do not delay the webhook of the same project, though 95 forms made without a key have one each', {
    timeout: 60_000,
  }, async () => {
    await using database = await openTestDatabase(engine);
    await using silent = await startSilent();
    const { projectId } = await givenForm(database);
    const forms = await Promise.all(
      Array.from({ length: 95 }, () =>
        givenForm(database, { ...deliveredByWebhook, projectId, createdBy: 'public' }),
      ),
    );
    // Calls for such forms are limited by address.
    for (const [n, form] of forms.entries()) {
      await givenWebhook(database, form, { url: silent.at(n + 1), formId: form.id, keyless: true });
    }

    const lags = await lagsBeside(database, { projectId }, async (delivery) => {
      for (const form of forms) await givenSubmissions(database, form, [{}, {}, {}, {}], delivery);
    });

    expect(percentile(lags, 99)).toBeLessThan(LAG_MS);
  });
});

/**
 * The times from storing to arrival of webhooks, in milliseconds, beside an attack. Half of them are
 * stored by the process that delivers, half by another one.
 */
async function lagsBeside(
  database: Database,
  given: { projectId?: string },
  attack: (delivery: ReturnType<typeof startDelivery>) => Promise<void>,
): Promise<number[]> {
  await using receiver = await startReceiver();
  const form = await givenForm(database, { ...deliveredByWebhook, ...given });
  await givenWebhook(database, form, { url: receiver.url, formId: form.id });
  await using delivery = startDelivery(database, { settings: { schedule: [0, 5, 30] } });
  await attack(delivery);

  const sentAt = new Map<string, number>();
  for (let n = 0; n < EVENTS; n += 1) {
    const at = Date.now();
    const [event = ''] = await givenSubmissions(database, form, [{}], n % 2 === 0 ? delivery : {});
    if (n % 2 === 1) delivery.notify();
    sentAt.set(event, at);
    await sleep(25);
  }
  await receiver.expectRequests(EVENTS, 20_000);
  void delivery.stop(0);
  return receiver.received.map(({ at, headers }) => at - (sentAt.get(String(headers['webhook-id'])) ?? 0));
}

async function startSilent() {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
  }).listen(0, '0.0.0.0');
  await once(server, 'listening');
  return {
    /** Its URL at the nth of its addresses. */
    at: (n: number) => `http://127.0.1.${n}:${(server.address() as AddressInfo).port}/`,
    async [Symbol.asyncDispose]() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

function percentile(values: number[], percent: number): number {
  return values.toSorted((one, other) => one - other)[Math.ceil((values.length * percent) / 100) - 1] ?? 0;
}
