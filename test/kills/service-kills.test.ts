import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createServerDatabase, engines, givenEmbeddedDatabase } from '../support/database.ts';
import { spawnService, temporaryFolder } from '../support/spawn.ts';
import { until } from '../support/until.ts';
import { KEY, settings } from './given.ts';

const KILLS = 3;
const WRITERS = 16;

describe.each(engines)('on %s', (engine) => {
  it('keeps every form, submission, session and webhook it acknowledged, whenever it is killed', {
    timeout: 180_000,
  }, async () => {
    using folder = temporaryFolder();
    await using server = engine === 'postgres' ? await createServerDatabase() : undefined;
    if (server === undefined) await givenEmbeddedDatabase(join(folder.path, 'data', 'database'));
    const env = await settings(folder.path, server?.databaseUrl);
    const url = `http://127.0.0.1:${env.PORT}`;
    const acknowledged: string[] = [];

    for (let kill = 0; kill < KILLS; kill += 1) {
      await using service = spawnService(env);
      await service.started();
      const call = caller(url);
      const form = await givenPublishedForm(call);
      const before = acknowledged.length;
      const writers = Array.from({ length: WRITERS }, () => writeUntilDead(call, form, acknowledged));
      await until(() => acknowledged.length - before > 100 * (kill + 1));
      await service.stop('SIGKILL');
      await Promise.all(writers);
    }

    await using service = spawnService(env);
    await service.started();
    const call = caller(url);
    const lost: string[] = [];
    for (const path of acknowledged) {
      if ((await call('GET', path)).status !== 200) lost.push(path);
    }
    expect(acknowledged.length).toBeGreaterThan(KILLS * 100);
    expect(lost).toEqual([]);
  });
});

/** Writes one thing after the other until the service is gone, and notes where each can be read. */
async function writeUntilDead(call: Call, form: string, acknowledged: string[]): Promise<void> {
  const kinds = [
    async () => {
      const { json } = await call('POST', `/api/forms/${form}/submissions`, {
        answers: { email: 'a@example.com' },
      });
      return `/v1/submissions/${json.submission_id}`;
    },
    async () => {
      const { json } = await call('POST', `/v1/forms/${form}/sessions`, {});
      return `/v1/sessions/${json.session.id}`;
    },
    async () => {
      const created = await call('POST', '/api/forms/create', definition);
      const { json } = await call('POST', '/v1/webhooks', {
        url: 'https://example.com/hook',
        events: ['session.expired'],
        form_id: created.json.form.id,
      });
      return `/v1/webhooks/${json.webhook.id}`;
    },
    async () => {
      const { json } = await call('POST', '/api/forms/create', definition);
      return `/v1/forms/${json.form.id}`;
    },
  ];
  for (let turn = 0; ; turn += 1) {
    try {
      const path = await kinds[turn % kinds.length]?.();
      if (path !== undefined) acknowledged.push(path);
    } catch {
      // The service was killed under this call, which therefore was not acknowledged.
      return;
    }
  }
}

async function givenPublishedForm(call: Call): Promise<string> {
  const { json } = await call('POST', '/api/forms/create', definition);
  await call('POST', json.form.activate_url, { email: 'owner@example.com' });
  return json.form.id;
}

function caller(url: string): Call {
  return async (method, path, body) => {
    const response = await fetch(url + path, {
      method,
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    return { status: response.status, json: (await response.json()) as Reply };
  };
}

const definition = {
  name: 'Contact',
  slug: 'contact',
  fields: [{ id: 'email', type: 'email', required: true }],
  delivery: { type: 'email' },
};

type Call = (method: string, path: string, body?: unknown) => Promise<{ status: number; json: Reply }>;

/** The parts of replies that this test reads. */
type Reply = {
  submission_id: string;
  form: { id: string; activate_url: string };
  session: { id: string };
  webhook: { id: string };
};
