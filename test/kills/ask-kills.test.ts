import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createServerDatabase, engines, givenEmbeddedDatabase } from '../support/database.ts';
import { startReceiver } from '../support/receiver.ts';
import { spawnService, temporaryFolder } from '../support/spawn.ts';
import { until } from '../support/until.ts';
import { KEY, settings } from './given.ts';

const ASKS = { postgres: 1000, pglite: 200 };
const KILLS = 2;

describe.each(engines)('questions on %s', (engine) => {
  it('each reach one outcome, which is told once it is stored, and always the same, whenever the service is killed', {
    timeout: 300_000,
  }, async () => {
    using folder = temporaryFolder();
    await using server = engine === 'postgres' ? await createServerDatabase() : undefined;
    await using receiver = await startReceiver();
    if (server === undefined) await givenEmbeddedDatabase(join(folder.path, 'data', 'database'));
    const env = await settings(folder.path, server?.databaseUrl);
    const start = () =>
      spawnService({ ...env, WEBHOOK_ALLOW_PRIVATE: 'true', WEBHOOK_RETRY_SCHEDULE: '0,1,1' });
    const call = caller(`http://127.0.0.1:${env.PORT}`);
    const sessions: string[] = [];
    const ended = new Map<string, string>();

    for (let kill = 0; kill <= KILLS; kill += 1) {
      await using service = start();
      await service.started();
      const wanted = Math.ceil((ASKS[engine] * (kill + 1)) / (KILLS + 1));
      let asked = sessions.length;
      // Asks and ends questions until there are enough, or until the service is gone.
      const askers = Array.from({ length: 16 }, async () => {
        while (kill < KILLS || asked++ < wanted) {
          const made = await call('POST', '/v1/sessions', { ...question, callback: { url: receiver.url } });
          if (made === undefined) return;
          const { id } = made.session;
          const how = ends[sessions.push(id) % ends.length] ?? ends[0];
          if (await call('POST', `/v1/sessions/${id}/${how.path}`, how.body)) ended.set(id, how.outcome);
        }
      });
      if (kill === KILLS) {
        await Promise.all(askers);
        break;
      }
      await until(() => sessions.length >= wanted, 60_000);
      await service.stop('SIGKILL');
      await Promise.all(askers);
    }

    await using service = start();
    await service.started();
    const told = () =>
      Map.groupBy(receiver.received, ({ body }) => JSON.parse(body).data.sessionId as string);
    // What the service was killed under was stored or not: the session says so, and nobody else.
    const stored = new Map<string, string | undefined>();
    for (const id of sessions) {
      const reply = await call('GET', `/v1/sessions/${id}`);
      if (reply?.session.outcome) stored.set(id, reply.session.outcome);
    }
    // An attempt that a killed process began belongs to it for a minute.
    await until(
      () => told().size >= stored.size,
      120_000,
      () => `${told().size} of ${stored.size} were told`,
    );

    expect(sessions.length).toBeGreaterThanOrEqual(ASKS[engine]);
    for (const [id, outcome] of ended) expect([id, stored.get(id)]).toEqual([id, outcome]);
    for (const [id, calls] of told()) {
      expect([id, new Set(calls.map(({ body }) => JSON.parse(body).data.outcome))]).toEqual([
        id,
        new Set([stored.get(id)]),
      ]);
      expect(new Set(calls.map(({ headers, body }) => `${String(headers['webhook-id'])} ${body}`)).size).toBe(
        1,
      );
    }
  });
});

const question = {
  definition: { fields: [{ id: 'deploy', label: 'Deploy?', type: 'boolean' }] },
  allow_decline: true,
};

const ends = [
  { path: 'submit', body: { answers: { deploy: true } }, outcome: 'submitted' },
  { path: 'decline', body: { reason: 'Not now' }, outcome: 'declined' },
  { path: 'cancel', body: {}, outcome: 'cancelled' },
] as const;

/** Calls the service. Undefined once it was killed under the call, which therefore was not acknowledged. */
function caller(url: string) {
  return async (method: string, path: string, body?: unknown): Promise<Reply | undefined> => {
    const response = await fetch(url + path, {
      method,
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    }).catch(() => undefined);
    const reply: unknown = await response?.json().catch(() => undefined);
    if (response !== undefined && reply !== undefined) expect([path, response.ok]).toEqual([path, true]);
    return reply as Reply | undefined;
  };
}

/** The part of replies that this test reads. */
type Reply = { session: { id: string; outcome?: string | null } };
