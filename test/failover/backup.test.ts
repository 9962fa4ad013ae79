import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { admin } from '../support/installation.ts';
import { runOn } from '../support/postgres.ts';
import { freePort, spawnService, temporaryFolder } from '../support/spawn.ts';
import { until } from '../support/until.ts';
import { postgresPrograms } from './cluster.ts';
import { NOBODY, root, startProgram } from './programs.ts';

const KEY = 'a-key-for-the-tests-of-backups-only';

describe('a backup of a server', () => {
  it.each([
    ['of a database', {}],
    ['of one schema of it', { DATABASE_SCHEMA: 'cell' }],
  ])(
    'brings answers, files and keys back when the disks of both are lost, %s',
    {
      timeout: 360_000,
    },
    async (_, schema) => {
      await using server = await startServer();
      using folder = temporaryFolder();
      const env = { ...(await settings(folder.path, server)), ...schema };
      if ('DATABASE_SCHEMA' in schema) {
        await runOn(server.databaseUrl, 'create schema cell');
        await runOn(server.databaseUrl, 'create table submissions (of_another_service text)');
      }
      const file = join(folder.path, 'forms.tar.gz');
      const kept: { submission: string; upload: string }[] = [];
      let form = '';
      {
        await using service = spawnService(env);
        await service.started();
        const call = caller(env);
        form = await givenForm(call);
        for (let n = 0; n < 20; n += 1) kept.push(await givenFile(call, form));

        const made = await admin(['backup', file], env);
        const onto = await admin(['backup', file], env);

        expect(made).toMatchObject({ code: 0, errors: expect.stringMatching(/acknowledged before \S+\.$/m) });
        expect(onto).toMatchObject({ code: 1, errors: expect.stringMatching(/already exists/) });
        await service.stop('SIGKILL');
      }
      const checked = await admin(['restore', '--check', file], env);
      rmSync(env.DATA_DIR, { recursive: true });
      await runOn(server.adminUrl, 'drop database forms with (force)');
      await runOn(server.adminUrl, 'create database forms');
      if ('DATABASE_SCHEMA' in schema) await runOn(server.databaseUrl, 'create schema cell');

      const wrongKey = await admin(['restore', file], { ...env, SECRET_KEY: 'cd'.repeat(32) });
      const restored = await admin(['restore', file], env);

      const found =
        /^Read 2 projects, 2 forms, 20 submissions, 1 api keys and 20 files; 0 files are missing\.$/m;
      expect(checked).toMatchObject({ code: 0, errors: expect.stringMatching(found) });
      expect(wrongKey).toMatchObject({ code: 1, errors: expect.stringMatching(/^SECRET_KEY: not the key/m) });
      expect(restored).toMatchObject({ code: 0, errors: expect.stringMatching(found) });
      expect(readdirSync(folder.path).toSorted()).toEqual(['bin', 'data', 'forms.tar.gz']);
      expect(readdirSync(env.DATA_DIR)).toEqual(['uploads']);
      await using service = spawnService(env);
      await service.started();
      const call = caller(env);
      for (const { submission, upload } of kept) {
        expect((await call('GET', `/v1/submissions/${submission}`)).status).toBe(200);
        expect((await call('GET', `/v1/uploads/${upload}`)).text).toBe('A file.');
      }
      expect((await call('GET', '/v1/audit')).status).toBe(200);
      await givenFile(call, form);
      const schemas = await runOn(
        server.databaseUrl,
        "select distinct schemaname from pg_tables where schemaname in ('cell', 'public')",
      );
      expect(schemas).toEqual([{ schemaname: 'DATABASE_SCHEMA' in schema ? 'cell' : 'public' }]);
    },
  );

  it('holds the files of what is deleted between the dump and the copy', { timeout: 180_000 }, async () => {
    await using server = await startServer();
    using folder = temporaryFolder();
    const env = await settings(folder.path, server);
    const file = join(folder.path, 'forms.tar.gz');
    // The real one, which says when the dump is made, and waits before it ends.
    const [made, goOn] = [join(folder.path, 'made'), join(folder.path, 'go-on')];
    writeFileSync(
      join(env.PATH.split(':')[0] ?? '', 'pg_dump'),
      `#!/bin/sh
"${server.bin}/pg_dump" "$@" || exit 1
case "$*" in *--version*) exit 0 ;; esac
touch "${made}"
until [ -e "${goOn}" ]; do sleep 0.1; done
`,
      { mode: 0o755 },
    );
    await using service = spawnService(env);
    await service.started();
    const call = caller(env);
    const form = await givenForm(call);
    const deleted = await givenFile(call, form);
    const path = join(env.DATA_DIR, 'uploads', deleted.upload.slice(-2), deleted.upload);

    const backup = admin(['backup', file], env);
    await until(() => existsSync(made));
    expect((await call('DELETE', `/v1/submissions/${deleted.submission}`)).status).toBe(200);
    const deletedAt = Date.now() / 1000;
    await until(async () => (await lastFileRemoval(env)) > deletedAt);
    const other = await admin(['backup', join(folder.path, 'other.tar.gz')], env);
    writeFileSync(goOn, '');
    const outcome = await backup;

    expect(outcome.code).toBe(0);
    expect(other).toMatchObject({ code: 1, errors: expect.stringContaining('Another backup is under way.') });
    const checked = await admin(['restore', '--check', file], env);
    expect(checked).toMatchObject({
      code: 0,
      errors: expect.stringContaining(' 1 files; 0 files are missing.'),
    });
    await until(() => !existsSync(path));
  });
});

/** When the worker that removes files last ran, in seconds since 1970. */
async function lastFileRemoval({ METRICS_PORT }: { METRICS_PORT: string }): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${METRICS_PORT}/metrics`)).text();
  return Number(
    /^forms_work_last_success_timestamp_seconds\{work="file removal"\} (\S+)$/m.exec(text)?.[1] ?? 0,
  );
}

/** A PostgreSQL server of Debian's newest version, which has the same pg_dump, and an empty database on it. */
async function startServer() {
  await using opened = new AsyncDisposableStack();
  const bin = postgresPrograms();
  const folder = opened.use(temporaryFolder()).path;
  chmodSync(folder, 0o755);
  if (root) chownSync(folder, NOBODY, NOBODY);
  const data = join(folder, 'data');
  const asUser = root ? { uid: NOBODY, gid: NOBODY } : {};
  const flags = ['-D', data, '-U', 'postgres', '--locale=C', '--encoding=UTF8', '--no-sync'];
  execFileSync(join(bin, 'initdb'), flags, { ...asUser, cwd: folder, stdio: 'ignore' });
  const port = await freePort();
  const listening = ['-p', String(port), '-h', '127.0.0.1', '-k', ''];
  startProgram(opened, join(folder, 'log'), join(bin, 'postgres'), ['-D', data, ...listening]);
  const at = (name: string) => `postgres://postgres:a-password@127.0.0.1:${port}/${name}`;
  const adminUrl = at('postgres');
  await until(() =>
    runOn(adminUrl, 'create database forms').then(
      () => true,
      () => false,
    ),
  );
  const owned = opened.move();
  return { bin, adminUrl, databaseUrl: at('forms'), [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

async function settings(folder: string, { bin, databaseUrl }: { bin: string; databaseUrl: string }) {
  const [port, grpcPort, metricsPort] = await Promise.all([freePort(), freePort(), freePort()]);
  const own = join(folder, 'bin');
  mkdirSync(own);
  return {
    PATH: `${own}:${bin}:${process.env.PATH}`,
    PORT: String(port),
    GRPC_PORT: String(grpcPort),
    METRICS_PORT: String(metricsPort),
    HOST: '127.0.0.1',
    DATA_DIR: join(folder, 'data'),
    DATABASE_URL: databaseUrl,
    SECRET_KEY: 'ab'.repeat(32),
    BOOTSTRAP_API_KEY: KEY,
    RATE_LIMIT: 'off',
  };
}

function caller({ PORT }: { PORT: string }) {
  return async (method: string, path: string, body?: object | string) => {
    const isFile = typeof body === 'string';
    const response = await fetch(`http://127.0.0.1:${PORT}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${KEY}`,
        'content-type': isFile ? 'application/octet-stream' : 'application/json',
      },
      ...(body !== undefined && { body: isFile ? body : JSON.stringify(body) }),
    });
    return { status: response.status, text: await response.text() };
  };
}

async function givenForm(call: Call): Promise<string> {
  const created = JSON.parse((await call('POST', '/api/forms/create', definition)).text);
  await call('POST', created.form.activate_url, { email: 'owner@example.com' });
  return created.form.id;
}

async function givenFile(call: Call, form: string): Promise<{ submission: string; upload: string }> {
  const uploaded = await call('POST', `/api/forms/${form}/uploads?field=cv&filename=cv.txt`, 'A file.');
  const upload = JSON.parse(uploaded.text).upload.upload_id;
  const answers = { text: 'Tabs\t, lines\n and \\ \u2028', cv: { upload_id: upload } };
  const submitted = await call('POST', `/api/forms/${form}/submissions`, { answers });
  return { submission: JSON.parse(submitted.text).submission_id, upload };
}

const definition = {
  name: 'Application',
  slug: 'application',
  fields: [
    { id: 'text', type: 'text' },
    { id: 'cv', type: 'file' },
  ],
  delivery: { type: 'email' },
};

type Call = ReturnType<typeof caller>;
