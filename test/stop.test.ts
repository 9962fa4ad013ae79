import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { createServerDatabase } from './support/database.ts';
import { openDatabaseProxy } from './support/database-proxy.ts';
import { runOn } from './support/postgres.ts';
import { startReceiver } from './support/receiver.ts';
import { freePort, spawnService, temporaryFolder } from './support/spawn.ts';

it.concurrent('ends with code 0 on SIGTERM while the database is away, and a later start repeats what it could not store', async () => {
  using folder = temporaryFolder();
  await using server = await createServerDatabase();
  using proxy = await openDatabaseProxy(server.databaseUrl);
  const answers: ServerResponse[] = [];
  await using receiver = await startReceiver((_, response) => void answers.push(response));
  const env = await settings(folder.path, proxy.databaseUrl);
  await using service = spawnService(env);
  await service.started();
  await submit(`http://127.0.0.1:${env.PORT}`, receiver.url);
  await receiver.expectRequests(1);

  proxy.cut();
  await untilNotReady(`http://127.0.0.1:${env.PORT}`);
  const stopping = service.stop('SIGTERM');
  answers[0]?.writeHead(204).end();
  const ended = await stopping;
  expect(ended.code, ended.errors).toBe(0);
  expect(answers[0]?.writableFinished).toBe(true);

  await proxy.mend();
  await runOn(
    server.databaseUrl,
    "update delivery_queue set first_lease_until = now() - interval '1 second' where first_lease_until is not null",
  );
  await using next = spawnService(env);
  await next.started();
  await receiver.expectRequests(2);
  answers[1]?.writeHead(204).end();
  const [first, second] = receiver.received;
  expect(second?.headers['webhook-id']).toBe(first?.headers['webhook-id']);
  expect((await next.stop()).code).toBe(0);
});

it.concurrent('says on SIGTERM that it is not ready, and takes calls for DRAIN_SECONDS more', async () => {
  using folder = temporaryFolder();
  await using server = await createServerDatabase();
  const env = await settings(folder.path, server.databaseUrl);
  await using service = spawnService({ ...env, DRAIN_SECONDS: '3' });
  await service.started();
  const url = `http://127.0.0.1:${env.PORT}`;
  const keptOpen = (await fetch(`${url}/ready`)).headers.get('connection');

  const stopping = service.stop('SIGTERM');
  await untilNotReady(url);
  const ready = await fetch(`${url}/ready`);
  const taken = await fetch(`${url}/v1/forms`, { headers: { authorization: `Bearer ${KEY}` } });
  const { code } = await stopping;

  expect(ready.status).toBe(503);
  expect(await ready.json()).toMatchObject({ error: { reason: 'unavailable' } });
  expect(taken.status).toBe(200);
  expect([keptOpen, taken.headers.get('connection')]).toEqual(['keep-alive', 'close']);
  expect(code).toBe(0);
  await expect(fetch(`${url}/ready`)).rejects.toThrow('fetch failed');
});

/** Makes a form whose answers go to `receiver`, publishes it, and submits an answer. */
async function submit(url: string, receiver: string): Promise<void> {
  const post = async (path: string, body: object): Promise<Reply> => {
    const response = await fetch(url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    expect(response.status).toBeLessThan(300);
    return (await response.json()) as Reply;
  };
  const { form } = await post('/api/forms/create', {
    name: 'Contact',
    slug: 'contact',
    fields: [{ id: 'email', type: 'email' }],
    delivery: { type: 'webhook', url: receiver },
  });
  await post(form.activate_url, { email: 'owner@example.com' });
  await post(`/api/forms/${form.id}/submissions`, { answers: { email: 'ada@example.com' } });
}

async function untilNotReady(url: string): Promise<void> {
  while ((await fetch(`${url}/ready`)).ok);
}

const KEY = 'a-key-for-the-tests-of-stopping-only';

async function settings(folder: string, databaseUrl: string) {
  const [port, grpcPort] = await Promise.all([freePort(), freePort()]);
  return {
    PORT: String(port),
    GRPC_PORT: String(grpcPort),
    HOST: '127.0.0.1',
    DATA_DIR: join(folder, 'data'),
    DATABASE_URL: databaseUrl,
    SECRET_KEY: 'ab'.repeat(32),
    BOOTSTRAP_API_KEY: KEY,
    WEBHOOK_ALLOW_PRIVATE: 'true',
  };
}

/** The part of replies that this test reads. */
type Reply = { form: { id: string; activate_url: string } };
