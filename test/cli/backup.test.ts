import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { createServerDatabase } from '../support/database.ts';
import { admin, givenInstallation } from '../support/installation.ts';
import { inDatabase, runOn } from '../support/postgres.ts';
import { program } from '../support/programs.ts';
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
    expect(restored.errors).toMatch(
      /^Read 2 projects, 2 forms, \d+ submissions, 1 api keys and 1 files; 0 files are missing\.$/m,
    );
    expect(restored.code).toBe(0);
    expect(readdirSync(dataDir).sort()).toEqual(['database', 'secret.key', 'uploads']);
    await using again = spawnService(env);
    await again.started();
    const kept = new Set(await client.listIds(form));
    expect(before.length).toBeGreaterThan(100);
    expect(before.filter((id) => !kept.has(id))).toEqual([]);
    expect(await client.read(upload)).toBe('kept');
  });

  it('has nothing of what was erased before, and neither has the folder after admin vacuum --full', async () => {
    await using installation = await givenInstallation('pglite');
    const { DATA_DIR: dataDir = '', ...env } = installation.env;
    const all = { ...env, DATA_DIR: dataDir };
    await using service = spawnService(all);
    const { firstKey = '' } = await service.started();
    const client = clientOf(all, firstKey);
    const form = await client.givenForm();
    const erase = async (text: string) => {
      await client.erase(await client.submit(form, { text: text + 'x'.repeat(500) }));
    };
    const filesWith = (folder: string, text: string) =>
      spawnSync('grep', ['-rla', text, folder], { encoding: 'utf8' }).stdout.split('\n').filter(Boolean);
    await client.submit(form, { text: 'stays'.repeat(20) });
    await erase('erased-before-a-vacuum');
    expect(filesWith(dataDir, 'erased-before-a-vacuum')).not.toEqual([]);

    const vacuumed = await admin(['vacuum', '--full'], all);
    const left = filesWith(dataDir, 'erased-before-a-vacuum');
    await erase('erased-before-a-backup');
    const file = join(dirname(dataDir), 'backup.tar.gz');
    await admin(['backup', file], all);
    const unpacked = join(dirname(dataDir), 'unpacked');
    mkdirSync(unpacked);
    spawnSync('tar', ['-xzf', file, '-C', unpacked]);

    expect(vacuumed).toMatchObject({
      code: 0,
      errors: expect.stringMatching(/^Vacuumed the database\. Rewritten: .*\bsubmissions\b/m),
    });
    expect(left).toEqual([]);
    expect(filesWith(unpacked, 'erased-before-a-backup')).toEqual([]);
    expect(filesWith(unpacked, 'staysstays')).not.toEqual([]);
    expect(await client.listIds(form)).toHaveLength(1);
  });

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
    expect(foreign).toMatchObject({ code: 1, errors: expect.stringMatching(/is damaged or not a backup/) });
    expect(left).toEqual([]);
    expect(folders).toEqual({ code: 1, output: '', errors: `There is no file ${import.meta.dirname}.\n` });
    expect(restored).toMatchObject({ code: 0, errors: expect.stringContaining('Start the service') });
    expect((await admin(['backup', join(folder.path, 'x')], { DATA_DIR: folder.path })).errors).toMatch(
      /^There is no database in/,
    );
  });
});

describe('a restore that was killed', () => {
  it('before all was checked is to be repeated, and no service begins anew there', async () => {
    await using backup = await givenBackup();
    const { env, file } = backup;

    killedBeforeMoving(/./, file, env);
    const keys = await admin(['keys', 'list'], env);
    await using early = spawnService(env);
    const refused = await early.ended;
    const again = await admin(['restore', file], env);

    const line = /^DATA_DIR: a restore into .*elsewhere is running, or was interrupted\. .* repeat it.*\n$/;
    expect(keys).toMatchObject({ code: 1, errors: expect.stringMatching(line) });
    expect(refused).toMatchObject({ code: 1, errors: expect.stringMatching(line) });
    expect(again.code).toBe(0);
    backup.expectRestored();
  });

  it('when a part was in its place is finished by the next start', async () => {
    await using backup = await givenBackup();

    killedBeforeMoving(/secret/, backup.file, backup.env);
    const moved = readdirSync(backup.env.DATA_DIR);
    await using service = spawnService(backup.env);
    await service.started();

    expect(moved.sort()).toEqual(['database', 'restore.checked']);
    expect(await backup.statusWithKey()).toBe(200);
    backup.expectRestored();
  });
});

describe('a backup that lacks files', () => {
  it('is restored if that is allowed alone, and says how many there are and how many are missing', async () => {
    await using installation = await givenInstallation('pglite');
    const env: Record<string, string> = { ...installation.env };
    const { DATA_DIR: dataDir = '' } = env;
    const uploads: string[] = [];
    {
      await using service = spawnService(env);
      const { firstKey = '' } = await service.started();
      const client = clientOf(env, firstKey);
      const form = await client.givenForm();
      for (const content of ['one', 'two', 'three']) uploads.push(await client.upload(form, content));
      await service.stop();
    }
    const [lost = ''] = uploads;
    rmSync(join(dataDir, 'uploads', lost.slice(-2), lost));
    using folder = temporaryFolder();
    const file = join(folder.path, 'backup.tar.gz');
    await admin(['backup', file], env);
    const elsewhere = { ...env, DATA_DIR: join(folder.path, 'elsewhere') };

    const checked = await admin(['restore', '--check', file], elsewhere);
    const refused = await admin(['restore', file], elsewhere);
    const left = readdirSync(elsewhere.DATA_DIR);
    const taken = await admin(['restore', '--allow-missing-files', file], elsewhere);

    for (const { code, errors } of [checked, refused]) {
      expect(code).toBe(1);
      expect(errors).toContain(`The file of the upload ${lost} is missing.\n`);
      expect(errors).toMatch(/^1 of 3 files are missing\. .*--allow-missing-files\.$/m);
    }
    expect(left).toEqual([]);
    expect(taken.code).toBe(0);
    expect(taken.errors).toMatch(/ and 2 files; 1 files are missing\.$/m);
    expect(readdirSync(folder.path).toSorted()).toEqual(['backup.tar.gz', 'elsewhere']);
  });
});

describe('a backup of a server', () => {
  it('is refused without a pg_dump that is not older than it, and says which is needed', async () => {
    await using installation = await givenInstallation('postgres');
    const { env } = installation;
    using folder = temporaryFolder();
    const file = join(folder.path, 'forms.tar.gz');
    const old = join(folder.path, 'old');
    mkdirSync(old);
    writeFileSync(join(old, 'pg_dump'), '#!/bin/sh\necho "pg_dump (PostgreSQL) 9.6.24"\n', { mode: 0o755 });

    const none = await admin(['backup', file], { ...env, PATH: folder.path });
    const older = await admin(['backup', file], { ...env, PATH: `${old}:/bin` });

    for (const { code, errors } of [none, older]) {
      expect(code).toBe(1);
      expect(errors).toMatch(/is PostgreSQL (\d+): a backup of it needs pg_dump \1 or newer, and /);
    }
    expect(none.errors).toContain(
      'there is none here. Install it (Debian: apt-get install postgresql-client-',
    );
    expect(older.errors).toContain('the one here is 9. Install it');
    expect(readdirSync(folder.path)).toEqual(['old']);
  });

  it('is restored into an empty database alone, and without a file what is there is checked', async () => {
    await using installation = await givenInstallation('postgres');
    const { env } = installation;
    await using empty = await createServerDatabase({ migrated: false });
    const copy = `${new URL(empty.databaseUrl).pathname.slice(1)}_copy`;
    await runOn(
      empty.adminUrl,
      `create database ${copy} template ${new URL(env.DATABASE_URL ?? '').pathname.slice(1)}`,
    );
    const copied = { ...env, DATABASE_URL: inDatabase(empty.adminUrl, copy) };

    const nothing = await admin(['restore'], { ...env, DATABASE_URL: empty.databaseUrl });
    const checked = await admin(['restore'], copied);
    const used = await admin(['restore', import.meta.filename], copied);
    const none = await admin(['restore', 'none.dump'], copied);
    await runOn(empty.adminUrl, `drop database ${copy} with (force)`);

    expect(nothing).toMatchObject({
      code: 1,
      errors: expect.stringMatching(/has no tables\. To restore a backup, name the file/),
    });
    expect(checked).toMatchObject({ code: 0, errors: expect.stringMatching(/^Read 0 projects/m) });
    expect(used).toMatchObject({ code: 1, errors: expect.stringMatching(/DATABASE_URL is not empty\./) });
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
    erase: (submission: string) =>
      fetch(`${url}/v1/submissions/${submission}`, { method: 'DELETE', headers }),
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

/** A backup of an installation that has a key, and settings with another DATA_DIR, where there is nothing yet. */
async function givenBackup() {
  await using opened = new AsyncDisposableStack();
  const installation = opened.use(await givenInstallation('pglite'));
  const folder = opened.use(temporaryFolder());
  const file = join(folder.path, 'backup.tar.gz');
  const { output: key } = await admin(['keys', 'create'], installation.env);
  const secretKey = `${'ab'.repeat(32)}\n`;
  writeFileSync(join(installation.env.DATA_DIR ?? '', 'secret.key'), secretKey);
  const made = await admin(['backup', file], installation.env);
  expect(made.code).toBe(0);
  const dataDir = join(folder.path, 'elsewhere');
  const owned = opened.move();
  return {
    file,
    env: { ...installation.env, DATA_DIR: dataDir },
    statusWithKey: () => installation.statusWith(key.trim()),
    expectRestored() {
      expect(readdirSync(dataDir)).toEqual(expect.arrayContaining(['database', 'secret.key']));
      expect(readdirSync(dataDir).filter((name) => name.startsWith('restore'))).toEqual([]);
      expect(readFileSync(join(dataDir, 'secret.key'), 'utf8')).toBe(secretKey);
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Restores a backup in a process that is killed before it moves something of such a name into DATA_DIR. */
function killedBeforeMoving(name: RegExp, file: string, env: Record<string, string>): void {
  const kills = `import fs from 'node:fs';
    import { syncBuiltinESMExports } from 'node:module';
    import { basename, dirname } from 'node:path';
    const { renameSync, promises: { rename } } = fs;
    const check = (to) => {
      if (dirname(to) === process.env.DATA_DIR && ${name}.test(basename(to))) process.kill(process.pid, 'SIGKILL');
    };
    fs.renameSync = (from, to) => { check(to); renameSync(from, to); };
    fs.promises.rename = (from, to) => { check(to); return rename(from, to); };
    syncBuiltinESMExports();`;
  const { signal } = spawnSync(
    process.execPath,
    [
      `--import=data:text/javascript,${encodeURIComponent(kills)}`,
      ...program('cli'),
      'admin',
      'restore',
      file,
    ],
    { cwd: join(import.meta.dirname, '../..'), env: { PATH: process.env.PATH, ...env } },
  );
  expect(signal).toBe('SIGKILL');
}
