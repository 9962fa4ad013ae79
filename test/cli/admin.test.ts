import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { createClient } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-node';
import { describe, expect, it } from 'vitest';
import { KeysService } from '../../gen/headlessforms/v1/keys_pb.js';
import { newApiKey } from '../../src/domain/secrets/new-secrets.ts';
import { createServerDatabase, engines, givenEmbeddedDatabase } from '../support/database.ts';
import { admin, givenInstallation } from '../support/installation.ts';
import { program } from '../support/programs.ts';
import { freePort, spawnService, temporaryFolder } from '../support/spawn.ts';
import { until } from '../support/until.ts';

describe.each(engines)('admin commands on %s', (engine) => {
  it('make, list and revoke keys and end sessions while the service runs, by a socket for its owner alone if it is embedded', async () => {
    await using installation = await givenInstallation(engine);
    const { env, statusWith } = installation;
    const bootstrapKey = newApiKey();
    const socket = join(env.DATA_DIR ?? '', 'admin.sock');
    const isEmbedded = engine === 'pglite';
    await using service = spawnService({ ...env, BOOTSTRAP_API_KEY: bootstrapKey });
    await service.started();
    expect(statSync(socket, { throwIfNoEntry: false })?.mode).toBe(isEmbedded ? 0o140600 : undefined);

    const listed = await admin(['keys', 'list'], env);
    const id = /^(key_\S+) .* BOOTSTRAP_API_KEY$/m.exec(listed.output)?.[1] ?? '';
    const options = ['--project', 'shop', '--scopes', 'forms:read', '--name', 'tool'];
    const made = await spawnCli(['admin', 'keys', 'create', ...options], env);
    const key = made.output.trim();

    expect(made).toMatchObject({ code: 0, output: expect.stringMatching(/^hfs_\w{43}\n$/) });
    expect(made.errors).toMatch(/^Made key_\S+ in the project shop, with the scopes forms:read\.$/m);
    expect(await statusWith(key)).toBe(200);
    expect(await statusWith(bootstrapKey)).toBe(200);
    const client = createClient(
      KeysService,
      createConnectTransport({ baseUrl: `http://127.0.0.1:${env.PORT}`, httpVersion: '1.1' }),
    );
    const headers = { authorization: `Bearer ${bootstrapKey}` };
    const { key: kept, secret } = await client.createKey(
      { name: 'child', scopes: ['forms:read'] },
      { headers },
    );
    expect(await admin(['keys', 'revoke', id], env)).toMatchObject({
      code: 1,
      errors: `The key made a key that still works: ${kept?.id}; give --revoke-children or --keep-children\n`,
    });
    expect(await statusWith(bootstrapKey)).toBe(200);
    expect(await admin(['keys', 'revoke', id, '--keep-children'], env)).toMatchObject({
      code: 0,
      output: '',
    });
    expect(await statusWith(secret)).toBe(200);
    await until(async () => (await statusWith(bootstrapKey)) === 401);
    expect(await admin(['keys', 'revoke', id], env)).toEqual({
      code: 1,
      output: '',
      errors: `There is no key ${id}.\n`,
    });
    expect(await admin(['owners', 'sign-out', 'Ada@Example.com'], env)).toMatchObject({
      code: 0,
      errors: expect.stringMatching(/^Ended 0 sessions of Ada@Example.com, and voided links to sign in\.$/m),
    });
    expect(await admin(['owners', 'sign-out'], env)).toMatchObject({ code: 2 });

    await service.stop('SIGKILL');
    expect(existsSync(socket)).toBe(isEmbedded);
    expect((await admin(['projects'], env)).code).toBe(0);
    await using again = spawnService({ ...env, BOOTSTRAP_API_KEY: bootstrapKey });
    expect((await again.started()).output).toMatch(/WARNING +BOOTSTRAP_API_KEY was revoked and stays so/);
    expect((await admin(['projects'], env)).errors).toBe('');
    expect(await statusWith(bootstrapKey)).toBe(401);
    expect(await statusWith(key)).toBe(200);
    expect(await again.stop()).toMatchObject({ code: 0, errors: '' });
    expect(existsSync(socket)).toBe(false);
  });

  it('name the webhooks that fail, with the host and the last error', async () => {
    await using installation = await givenInstallation(engine);
    const { env } = installation;
    const key = newApiKey();
    await using service = spawnService({ ...env, BOOTSTRAP_API_KEY: key, WEBHOOK_ALLOW_PRIVATE: 'true' });
    await service.started();
    const call = async (path: string, body: object) => {
      const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
      const url = `http://127.0.0.1:${env.PORT}${path}`;
      return (await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })).json();
    };
    const receiver = `127.0.0.1:${await freePort()}`;
    const { form } = (await call('/api/forms/create', {
      name: 'Contact',
      slug: 'contact',
      fields: [{ id: 'email', type: 'email' }],
      delivery: { type: 'webhook', url: `http://${receiver}/secret` },
    })) as { form: { id: string; activate_url: string } };
    await call(form.activate_url, { email: 'owner@example.com' });
    await call(`/api/forms/${form.id}/submissions`, { answers: { email: 'ada@example.com' } });

    const { output } = await until(async () => {
      const failing = await admin(['webhooks', 'failing'], env);
      return failing.output.includes(receiver) && failing;
    });

    expect(output.split('\n')[0]).toMatch(/^ID +PROJECT +HOST +FAILING SINCE +TRIED AGAIN +LAST ERROR$/);
    expect(output).toMatch(new RegExp(`^wh_\\w+ +default +${receiver} +\\d{4}-\\S+Z +- +\\S.*refused`, 'm'));
    expect(output).not.toContain('secret');
  });

  it('let whoever lost every key get in again, under the name of the user in the audit log, and erase a project while the service runs', async () => {
    await using installation = await givenInstallation(engine);
    const { env, statusWith } = installation;

    const lost = await admin(['keys', 'create', '--expires-in', '3600'], env);
    const id = /^Made (key_\S+)/m.exec(lost.errors)?.[1] ?? '';
    const listed = await admin(['keys', 'list', '--project', 'default'], env);
    expect((await admin(['keys', 'revoke', id], env)).code).toBe(0);
    const newKey = (await admin(['keys', 'create'], env)).output.trim();
    const before = await admin(['projects'], env);

    expect(listed.output).toContain(`${id}  default  …${lost.output.trim().slice(-4)}  *`);
    expect(before.output).toMatch(/^ID +CREATED +KEYS +FORMS +NAME\nprj_\S+ +[\d-]{10} +1 +0 +default\n$/);
    await using service = spawnService(env);
    expect((await service.started()).firstKey).toBeUndefined();
    expect(await statusWith(newKey)).toBe(200);
    expect(await statusWith(lost.output.trim())).toBe(401);
    const audit = await fetch(`http://127.0.0.1:${env.PORT}/v1/audit?action=key.`, {
      headers: { authorization: `Bearer ${newKey}` },
    });
    const { entries } = (await audit.json()) as { entries: { actor: string; action: string }[] };
    const user = expect.stringMatching(/^admin:.+/);
    expect(entries.map(({ actor, action }) => ({ actor, action }))).toEqual(
      ['key.created', 'key.revoked', 'key.created'].map((action) => ({ actor: user, action })),
    );

    const made = await admin(['keys', 'create', '--project', 'shop'], env);
    const key = made.output.trim();
    for (const each of [key, newKey]) await givenAnswer(env, each);
    for (let n = 0; n < 2; n += 1) await givenAnswer(env, key, 'eve@example.com');

    const person = ['erase', 'shop', '--value', 'Eve@example.com'];
    const unconfirmedPerson = await admin(person, env);
    const erasedPerson = await admin([...person, '--yes'], env);
    const unconfirmed = await admin(['erase', 'shop'], env);
    const erased = await admin(['erase', 'shop', '--yes'], env);
    const projects = await admin(['projects'], env);

    expect(unconfirmedPerson).toMatchObject({ code: 1, errors: expect.stringMatching(/add --yes\.$/m) });
    // Slow ones say how far they are before.
    expect(erasedPerson).toMatchObject({
      code: 0,
      errors: expect.stringMatching(
        /^Searched \d+ rows of shop\. Deleted 2 submissions and 0 sessions, with their files and deliveries\.\n$/m,
      ),
    });
    expect(unconfirmed).toMatchObject({ code: 1, errors: expect.stringMatching(/add --yes\.$/m) });
    expect(erased).toMatchObject({
      code: 0,
      errors: expect.stringMatching(
        /^Erased shop: 1 submissions, with its forms, webhooks, files and keys\.\n$/m,
      ),
    });
    expect(projects.output).toMatch(/ 0 +0 +shop$/m);
    expect(projects.output).toMatch(/ 1 +1 +default$/m);
    await until(async () => (await statusWith(key)) === 401);
    expect(await statusWith(newKey)).toBe(200);
    expect(await admin(['erase', 'shop', '--value', '', '--yes'], env)).toMatchObject({
      code: 1,
      errors: 'value: Required\n',
    });
    expect((await admin(['erase', 'none', '--yes'], env)).errors).toBe('There is no project named none.\n');
  });
});

describe('admin commands', () => {
  it('name every problem with what was asked for', async () => {
    await using installation = await givenInstallation('postgres');

    const scopes = [
      'keys',
      'create',
      '--scopes',
      'form:write',
      '--project',
      'no spaces',
      '--expires-in',
      '0',
    ];
    const { code, output, errors } = await admin(scopes, installation.env);

    expect({ code, output }).toEqual({ code: 1, output: '' });
    expect(errors).toMatch(/^scopes\[0\]: Expected one of .* Did you mean `forms:write`\?$/m);
    expect(errors).toMatch(/^project: Expected 1 to 64 letters/m);
    expect(errors).toMatch(/^expires_in: Expected at least 1 second$/m);
    expect(await admin(['keys', 'list', '--project', 'shop'], installation.env)).toMatchObject({
      code: 1,
      errors: 'There is no project named shop.\n',
    });
  });

  it('refuse what makes no sense before they open anything', async () => {
    const outcomes = await Promise.all(
      [
        ['keys'],
        ['keys', 'list', '--name', 'x'],
        ['projects', 'all'],
        ['keys', 'create', '--expires-in', '1d'],
      ].map((args) => admin(args, { DATABASE_URL: 'postgres://127.0.0.1:1/none' })),
    );

    expect(await spawnCli(['admin', 'keys'], {})).toEqual(outcomes[0]);
    const hint = 'Try: npm run cli -- --help\n';
    expect(outcomes).toEqual(
      [
        'Unknown command: admin keys',
        'admin keys list takes no --name',
        'Unknown argument: all',
        '--expires-in: Expected whole seconds, not 1d',
      ].map((line) => ({ code: 2, output: '', errors: `${line}\n${hint}` })),
    );
  });

  it('make no database where there is none, and say which one can’t be used', async () => {
    using folder = temporaryFolder();
    await using empty = await createServerDatabase({ migrated: false });
    const dataDir = join(folder.path, 'data');

    const [absent, unmigrated, away] = await Promise.all([
      admin(['projects'], { DATA_DIR: dataDir }),
      admin(['projects'], { DATABASE_URL: empty.databaseUrl }),
      admin(['projects'], { DATABASE_URL: 'postgres://127.0.0.1:1/none' }),
    ]);

    expect(absent).toMatchObject({
      code: 1,
      errors: expect.stringMatching(/^There is no database in .*data\. Set/),
    });
    expect(existsSync(dataDir)).toBe(false);
    expect(unmigrated).toMatchObject({
      code: 1,
      errors: expect.stringMatching(/^The tables are from another version\. Run/),
    });
    expect(away).toMatchObject({
      code: 1,
      errors: expect.stringMatching(/^The database at 127\.0\.0\.1:1\/none can't be reached/),
    });
  });

  it('are left out, with a warning, where the path of DATA_DIR is too long for a socket', async () => {
    using folder = temporaryFolder();
    const dataDir = join(folder.path, 'x'.repeat(100));
    mkdirSync(dataDir);
    await givenEmbeddedDatabase(join(dataDir, 'database'));
    const env = { DATA_DIR: dataDir, PORT: String(await freePort()), GRPC_PORT: String(await freePort()) };
    await using service = spawnService(env);
    await service.started();

    const { code, errors } = await admin(['projects'], env);

    expect(code).toBe(1);
    expect(errors).toMatch(/is in use by process \d+\. Stop it first/);
    expect((await service.stop()).errors).toContain('Admin commands need this service stopped');
  });

  it('vacuum an embedded database alone', async () => {
    await using embedded = await givenInstallation('pglite');
    await using server = await givenInstallation('postgres');

    expect(await admin(['vacuum', '--full'], embedded.env)).toMatchObject({ code: 0 });
    expect(await admin(['vacuum'], server.env)).toMatchObject({
      code: 1,
      errors: expect.stringMatching(/^PostgreSQL vacuums its tables by itself/),
    });
  });

  it.runIf(process.getuid?.() === 0)('write nothing into a folder of another user', async () => {
    await using installation = await givenInstallation('pglite');
    const { DATA_DIR = '' } = installation.env;
    chownSync(join(DATA_DIR, 'database'), 65_534, 65_534);

    expect(await admin(['projects'], installation.env)).toMatchObject({
      code: 1,
      errors: expect.stringMatching(/belongs to the user 65534: run the command as that one/),
    });
  });
});

/** Runs what `npm run cli --` runs, with these variables and no others of the service. */
async function spawnCli(args: string[], env: Record<string, string>) {
  const child = spawn(process.execPath, [...program('cli'), ...args], {
    cwd: join(import.meta.dirname, '../..'),
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  let errors = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
  const [code] = await once(child, 'close');
  return { code: typeof code === 'number' ? code : null, output, errors };
}

/** A published form of a key's project, with an answer. */
async function givenAnswer(
  env: Record<string, string>,
  key: string,
  email = 'ada@example.com',
): Promise<void> {
  const post = async (path: string, body: object) => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const url = `http://127.0.0.1:${env.PORT}${path}`;
    const reply = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
    if (!reply.ok) throw new Error(await reply.text());
    return reply.json() as Promise<{ form: { id: string; activate_url: string } }>;
  };
  const fields = [{ id: 'email', type: 'email' }];
  const { form } = await post('/api/forms/create', {
    name: 'Contact',
    slug: 'contact',
    fields,
    delivery: { type: 'email' },
  });
  await post(form.activate_url, { email: 'owner@example.com' });
  await post(`/api/forms/${form.id}/submissions`, { answers: { email } });
}
