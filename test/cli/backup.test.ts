import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { createServerDatabase } from '../support/database.ts';
import { admin, givenInstallation } from '../support/installation.ts';
import { inDatabase, runOn } from '../support/postgres.ts';
import { spawnService, temporaryFolder } from '../support/spawn.ts';
import { until } from '../support/until.ts';

describe('a backup of the embedded database', () => {
  it('made while answers come in, by one at a time, holds all that were acknowledged before it, and files and keys', async () => {
    await using installation = await givenInstallation('pglite');
    const env: Record<string, string> = { ...installation.env, RATE_LIMIT: 'off', ACCESS_LOG: 'off' };
    const { DATA_DIR: dataDir = '' } = env;
    await using service = spawnService(env);
    const { firstKey = '' } = await service.started();
    const client = clientOf(env, firstKey);
    const form = await client.givenForm();
    const upload = await client.upload(form, 'kept');
    await client.submit(form, { file: { upload_id: upload } });
    // So much that the copy of the first backup is still being packed when the second is asked for.
    mkdirSync(join(dataDir, 'uploads', '00'), { recursive: true });
    writeFileSync(join(dataDir, 'uploads', '00', 'large'), Buffer.alloc(32 * 1024 ** 2, 'x'));
    const load = startLoad(() => client.submit(form, { text: 'x'.repeat(500) }));
    await until(() => load.acknowledged.length > 100);

    const outcomes = await Promise.all(
      ['one', 'two'].map(async (name) => {
        const file = join(dirname(dataDir), `${name}.tar.gz`);
        return { file, ...(await admin(['backup', file], env)) };
      }),
    );
    const [made, other] = outcomes.toSorted((a, b) => a.code - b.code);
    if (made === undefined) throw new TypeError('There are two');
    const { file } = made;
    const [, madeAt = ''] = /acknowledged before (\S+)\.$/m.exec(made.errors) ?? [];
    const before = load.acknowledged.filter(({ at }) => at < Date.parse(madeAt)).map(({ id }) => id);
    await load.stop();
    await until(() => !existsSync(join(dataDir, 'backup.partial')));
    const onto = await admin(['backup', file], env);
    await service.stop('SIGKILL');
    rmSync(dataDir, { recursive: true });
    const restored = await admin(['restore', file], env);

    expect(made.errors).toMatch(/^Backed up [\d.]+ MiB to .*\. Writes waited for \d\.\d\d s\.$/m);
    expect([made.code, other?.code, onto.code]).toEqual([0, 1, 1]);
    expect(other?.errors).toMatch(/^Another backup is under way\.$/m);
    expect(readdirSync(dirname(dataDir)).filter((name) => name.endsWith('.partial'))).toEqual([]);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(spawnSync('tar', ['-tzf', file], { encoding: 'utf8' }).stdout).toContain('secret.key\n');
    expect(restored.errors).toMatch(/^Read 2 projects, 2 forms, \d+ submissions, 1 api keys and 1 files\.$/m);
    expect(restored.code).toBe(0);
    expect(readdirSync(dataDir).sort()).toEqual(['database', 'secret.key', 'uploads']);
    await using again = spawnService(env);
    await again.started();
    const kept = new Set(await client.listIds(form));
    expect(before.length).toBeGreaterThan(100);
    expect(before.filter((id) => !kept.has(id))).toEqual([]);
    expect(await client.read(upload)).toBe('kept');
  }, 60_000);

  it('of a service that is stopped is restored into an empty folder alone, and whole or not at all', async () => {
    await using installation = await givenInstallation('pglite');
    const { env } = installation;
    using folder = temporaryFolder();
    const file = join(folder.path, 'backup.tar.gz');
    const elsewhere = { ...env, DATA_DIR: join(folder.path, 'elsewhere') };
    const cut = join(folder.path, 'cut.tar.gz');

    const made = await admin(['backup', file], env);
    writeFileSync(cut, readFileSync(file).subarray(0, -1_000));
    const used = await admin(['restore', file], env);
    const damaged = await admin(['restore', cut], elsewhere);
    const foreign = await admin(['restore', import.meta.filename], elsewhere);
    const folders = await admin(['restore', import.meta.dirname], elsewhere);
    const left = existsSync(elsewhere.DATA_DIR) ? readdirSync(elsewhere.DATA_DIR) : [];
    const restored = await admin(['restore', file], elsewhere);

    expect(made).toMatchObject({ code: 0, errors: expect.stringContaining('No service runs on') });
    expect(used).toMatchObject({ code: 1, errors: expect.stringMatching(/is not empty: it has database/) });
    expect(damaged).toMatchObject({ code: 1, errors: expect.stringMatching(/cut\.tar\.gz is damaged/) });
    expect(foreign).toMatchObject({ code: 1, errors: expect.stringMatching(/is damaged or no backup/) });
    expect(left).toEqual([]);
    expect(folders).toEqual({ code: 1, output: '', errors: `There is no file ${import.meta.dirname}.\n` });
    expect(restored).toMatchObject({ code: 0, errors: expect.stringContaining('Start the service') });
    expect((await admin(['backup', join(folder.path, 'x')], { DATA_DIR: folder.path })).errors).toMatch(
      /^There is no database in/,
    );
  });
});

describe('a backup of a server', () => {
  it('is left to its own tools, and what they restored is checked', async () => {
    await using installation = await givenInstallation('postgres');
    const { env } = installation;
    await using empty = await createServerDatabase({ migrated: false });

    const made = await admin(['backup', 'forms.dump'], env);
    const before = await admin(['restore', 'forms.dump'], { ...env, DATABASE_URL: empty.databaseUrl });
    const copy = `${new URL(empty.databaseUrl).pathname.slice(1)}_copy`;
    await runOn(
      empty.adminUrl,
      `create database ${copy} template ${new URL(env.DATABASE_URL ?? '').pathname.slice(1)}`,
    );
    const copied = { ...env, DATABASE_URL: inDatabase(empty.adminUrl, copy) };
    const checked = await admin(['restore'], copied);
    const beside = await admin(['restore', import.meta.filename], copied);
    const none = await admin(['restore', 'none.dump'], copied);
    await runOn(empty.adminUrl, `drop database ${copy} with (force)`);

    expect(made).toMatchObject({
      code: 1,
      errors: expect.stringContaining('pg_dump --format=custom --no-owner --file=forms.dump "$DATABASE_URL"'),
    });
    expect(before).toMatchObject({
      code: 1,
      errors: expect.stringContaining(
        'pg_restore --no-owner --exit-on-error --dbname="$DATABASE_URL" forms.dump',
      ),
    });
    expect(checked).toMatchObject({ code: 0, errors: expect.stringMatching(/^Read 0 projects/m) });
    expect(beside).toMatchObject({
      code: 0,
      errors: expect.stringMatching(/backup\.test\.ts was not read\.$/m),
    });
    expect(none).toEqual({ code: 1, output: '', errors: 'There is no file none.dump.\n' });
  });
});

/** Calls of a service with a key. */
function clientOf(env: Record<string, string>, key: string) {
  const url = `http://127.0.0.1:${env.PORT}`;
  const headers = { authorization: `Bearer ${key}` };
  const post = async (path: string, body: object): Promise<Reply> => {
    const reply = await fetch(url + path, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    if (!reply.ok) throw new Error(`${path}: ${reply.status} ${await reply.text()}`);
    return reply.json() as Promise<Reply>;
  };
  return {
    async givenForm(): Promise<string> {
      const { form } = await post('/api/forms/create', {
        name: 'Contact',
        slug: 'contact',
        fields: [
          { id: 'text', type: 'text' },
          { id: 'file', type: 'file' },
        ],
        delivery: { type: 'webhook', url: 'https://example.com/hook' },
      });
      await post(form.activate_url, { email: 'owner@example.com' });
      return form.id;
    },
    submit: async (form: string, answers: object) =>
      (await post(`/api/forms/${form}/submissions`, { answers })).submission_id,
    async upload(form: string, content: string): Promise<string> {
      const body = new FormData();
      body.set('field', 'file');
      body.set('file', new File([content], 'a.txt', { type: 'text/plain' }));
      const reply = await fetch(`${url}/api/forms/${form}/uploads`, { method: 'POST', headers, body });
      return ((await reply.json()) as Reply).upload.upload_id;
    },
    async listIds(form: string): Promise<string[]> {
      const path = `/v1/forms/${form}/submissions/export?format=ndjson`;
      const text = await (await fetch(url + path, { headers })).text();
      return text.split('\n').flatMap((line) => (line === '' ? [] : [String(JSON.parse(line).id)]));
    },
    read: async (upload: string) => (await fetch(`${url}/v1/uploads/${upload}`, { headers })).text(),
  };
}

/** Submits by four callers until it is stopped, and notes what was acknowledged when. */
function startLoad(submit: () => Promise<string>) {
  const acknowledged: { id: string; at: number }[] = [];
  let stopped = false;
  const caller = async () => {
    while (!stopped) {
      const id = await submit();
      acknowledged.push({ id, at: Date.now() });
      await sleep(10);
    }
  };
  const callers = Promise.all(Array.from({ length: 4 }, caller));
  return {
    acknowledged,
    async stop() {
      stopped = true;
      await callers;
    },
  };
}

type Reply = {
  form: { id: string; activate_url: string };
  submission_id: string;
  upload: { upload_id: string };
};
