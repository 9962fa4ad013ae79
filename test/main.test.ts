import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, statSync, writeFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import manifest from '../package.json' with { type: 'json' };
import { describedSettings } from '../src/config.ts';
import { createServerDatabase, givenEmbeddedDatabase } from './support/database.ts';
import { openDatabaseProxy } from './support/database-proxy.ts';
import { inDatabase } from './support/postgres.ts';
import { startReceiver } from './support/receiver.ts';
import { freePort, type SpawnedService, spawnService, temporaryFolder } from './support/spawn.ts';
import { until } from './support/until.ts';
import { verifySignature } from './support/verify-signature.ts';

describe('npm start', () => {
  it('serves on an embedded database, prints the first key once, and keeps what it was given, its secret from others', async () => {
    using folder = temporaryFolder();
    const env = await embedded(folder.path);
    const url = `http://127.0.0.1:${env.PORT}`;

    await using first = spawnService(env, { fromSource: true });
    const { output, firstKey } = await first.started();
    const key = { authorization: `Bearer ${firstKey}`, 'content-type': 'application/json' };
    const created = await fetch(`${url}/api/forms/create`, {
      method: 'POST',
      headers: key,
      body: definition,
    });
    const pasted = await promisify(execFile)('sh', ['-c', output.slice(output.indexOf('URL='))]);
    const activation = await fetch(pasted.stdout.trim().replace('localhost', '127.0.0.1'));
    const stopped = await first.stop();
    await using second = spawnService(env);
    const again = await second.started();
    const forms = await fetch(`${url}/v1/forms`, { headers: key });

    expect(output).toContain(`http://localhost:${env.PORT}`);
    expect(output).toContain(`http://localhost:${env.GRPC_PORT}`);
    expect(output).toContain(join(folder.path, 'data', 'mail'));
    expect(output).toMatch(/Start here +http/);
    expect(pasted.stdout).toMatch(
      new RegExp(`^http://localhost:${env.PORT}/api/forms/form_\\w+/activate\\?token=\\S+\\n$`),
    );
    expect(activation.status).toBe(200);
    expect(created.status).toBe(201);
    expect(statSync(join(folder.path, 'data', 'secret.key')).mode & 0o777).toBe(0o600);
    expect(stopped).toMatchObject({ code: 0, errors: '' });
    expect(again.firstKey).toBeUndefined();
    expect(await forms.json()).toMatchObject({ forms: [{ name: 'Contact' }, { name: 'Contact' }] });
  });

  it('begins links with the port that it found, where PORT is 0', async () => {
    using folder = temporaryFolder();
    await using service = spawnService({ ...(await prepared(folder.path)), PORT: '0', GRPC_PORT: '0' });
    const { output, firstKey } = await service.started();
    const [, url = ''] = /Start here +(\S+)/.exec(output) ?? [];
    const headers = { authorization: `Bearer ${firstKey}`, 'content-type': 'application/json' };

    const created = await fetch(`${url}/api/forms/create`, { method: 'POST', headers, body: definition });
    const { form } = (await created.json()) as { form: { id: string } };
    const schema = await (await fetch(`${url}/v1/forms/${form.id}/agent-schema`, { headers })).json();

    expect(schema).toMatchObject({ submit: { url: `${url}/api/forms/${form.id}/submissions` } });
  });

  it('waits for a server that comes up late', async () => {
    using folder = temporaryFolder();
    await using server = await createServerDatabase();
    using proxy = await openDatabaseProxy(server.databaseUrl);
    proxy.cut();
    await using service = spawnService({
      ...(await embedded(folder.path)),
      DATABASE_URL: proxy.databaseUrl,
      SECRET_KEY: 'ab'.repeat(32),
    });

    const [line] = await once(service.child.stderr ?? service.child, 'data');
    await proxy.mend();
    const { output } = await service.started();

    expect(line).toMatch(
      /The database at \S+ can't be reached: .* The start waits for it, for another (59|60) s\./,
    );
    expect(output).toContain('Start here');
  });

  describe('with settings', () => {
    const bootstrapKey = 'a-key-that-deployment-tools-made-for-us';
    const opened = new AsyncDisposableStack();
    let service: SpawnedService;
    let env: Record<string, string>;
    let output: string;
    let errors = '';

    beforeAll(async () => {
      env = {
        ...(await prepared(opened.use(temporaryFolder()).path)),
        BOOTSTRAP_API_KEY: bootstrapKey,
        REQUIRE_API_KEY: 'false',
        OWNER_CONFIRMATION: 'off',
        SMPT_URL: 'smtp://localhost',
      };
      service = opened.use(spawnService(env));
      service.child.stderr?.on('data', (text: string) => (errors += text));
      ({ output } = await service.started());
    });
    afterAll(() => opened.disposeAsync());

    it('registers BOOTSTRAP_API_KEY instead of printing a key', async () => {
      const statusWith = async (key: string) => {
        const headers = { authorization: `Bearer ${key}` };
        return (await fetch(`http://127.0.0.1:${env.PORT}/v1/forms`, { headers })).status;
      };

      expect(output).not.toContain('API key');
      expect(await statusWith(bootstrapKey)).toBe(200);
      expect(await statusWith('another')).toBe(401);
    });

    it('warns of variables that look like misspelt settings, and serves', async () => {
      await until(() => errors.includes('SMPT_URL is not a setting: did you mean SMTP_URL?'));
    });

    it('warns when management routes answer without a key', () => {
      expect(output).toMatch(/WARNING.*REQUIRE_API_KEY=false/);
      expect(output).toMatch(/WARNING.*OWNER_CONFIRMATION=off: anyone who can make a form/);
    });

    it('ends a call under way before it leaves on SIGTERM', async () => {
      const call = request(`http://127.0.0.1:${env.PORT}/api/forms/create`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', expect: '100-continue' },
      });
      call.flushHeaders();
      // The answer that its body may come: it is under way.
      await once(call, 'continue');
      call.write(definition.slice(0, 20));

      const stopping = service.stop('SIGTERM');
      call.end(definition.slice(20));
      const [reply] = await once(call, 'response');
      reply.resume();

      expect(reply.statusCode).toBe(201);
      expect((await stopping).code).toBe(0);
    });
  });
});

describe('npm start --', () => {
  it.concurrent('answers --help with every setting and its default', async () => {
    await using service = spawnService({}, { args: ['--help'] });

    const { code, output, errors } = await service.ended;

    expect({ code, errors }).toEqual({ code: 0, errors: '' });
    expect(output).toContain('  PORT=8080\n      HTTP/1.1: REST, pages, Connect, gRPC-Web; HTTP/2');
    expect(output).toContain('  DATABASE_URL\n      postgres://');
    expect(output.match(/^ {2}[A-Z_]+(=.*)?$/gm)).toHaveLength(describedSettings.length);
  });

  it.concurrent('answers --version with the version alone', async () => {
    await using service = spawnService({}, { args: ['--version'] });

    expect(await service.ended).toMatchObject({ code: 0, output: `${manifest.version}\n`, errors: '' });
  });

  it.concurrent.each([
    [['--port=80'], 'Unknown argument: --port=80. Settings are environment variables: did you mean PORT?\n'],
    [['serve', '--help'], 'Unknown argument: serve --help.\n'],
  ])('refuses %j', async (args, line) => {
    await using service = spawnService({}, { args });

    const { code, output, errors } = await service.ended;

    expect({ code, output }).toEqual({ code: 2, output: '' });
    expect(errors).toBe(`${line}Try: npm start -- --help\n`);
  });
});

describe('a start that can’t be', () => {
  it.concurrent('names each bad setting in one line', async () => {
    using folder = temporaryFolder();
    const bad = { PORT: 'http', WEBHOOK_RETRY_SCHEDULE: 'soon', SECRET_KEY: 'abc' };
    const watch = { NODE_OPTIONS: imported(tellsLoadedApp) };
    await using service = spawnService(
      { ...(await embedded(folder.path)), ...bad, ...watch },
      { fromSource: true },
    );

    // Nothing tells of the app: settings are checked before it is loaded.
    await refusesWith(
      service,
      /^PORT: expected a whole number/,
      /^SECRET_KEY: expected 32 bytes/,
      /^WEBHOOK_RETRY_SCHEDULE: expected/,
    );
  });

  it.concurrent('points out misspelt settings beside what is wrong', async () => {
    await using service = spawnService({ WORKERS: '2', DATABASE_ULR: 'postgres://localhost/forms' });

    expect((await service.ended).errors).toMatch(
      /^WORKERS: more than 1 needs DATABASE_URL.*\nDATABASE_ULR is not a setting: did you mean DATABASE_URL\?\n$/,
    );
  });

  it.concurrent('says that DATA_DIR is no folder it can write', async () => {
    using folder = temporaryFolder();
    writeFileSync(join(folder.path, 'data'), 'a file');
    await using service = spawnService(await embedded(folder.path));

    await refusesWith(service, /data/);
  });

  it.concurrent.each([
    ['embedded', {}],
    ['server’s', { DATABASE_URL: 'postgres://127.0.0.1:1/forms', SECRET_KEY: 'ab'.repeat(32) }],
  ])('says that DATA_DIR is where no folder can be, with the %s database', async (_database, settings) => {
    await using service = spawnService({
      ...(await embedded(tmpdir())),
      ...settings,
      DATA_DIR: '/proc/nope',
    });

    await refusesWith(service, /^DATA_DIR: can't make \/proc\/nope: ENOENT/);
  });

  it.concurrent('says that the database is out of reach, every ten seconds for START_WAIT, without its password', async () => {
    using folder = temporaryFolder();
    const nobody = await freePort();
    await using service = spawnService({
      ...(await embedded(folder.path)),
      DATABASE_URL: `postgres://forms:hush-hush@127.0.0.1:${nobody}/forms`,
      SECRET_KEY: 'ab'.repeat(32),
      START_WAIT: '14',
      NODE_OPTIONS: imported(passesTimeAtOnce),
    });

    const problem = `The database at 127.0.0.1:${nobody}/forms can't be reached: connect ECONNREFUSED`;
    const ended = await service.ended;
    expect(ended).toMatchObject({ code: 1, output: '' });
    // The log is written beside what the process says at its end.
    expect(ended.errors.trim().split('\n').toSorted()).toEqual([
      expect.stringMatching(new RegExp(`^${problem}`)),
      expect.stringMatching(new RegExp(`${problem} .*for another 14 s`)),
      expect.stringMatching(new RegExp(`${problem} .*for another 4 s`)),
    ]);
    expect(ended.errors).not.toContain('hush-hush');
  });

  it.concurrent('does not wait for a database that the server does not have', async () => {
    using folder = temporaryFolder();
    await using server = await createServerDatabase();
    await using service = spawnService({
      ...(await embedded(folder.path)),
      DATABASE_URL: inDatabase(server.databaseUrl, 'nowhere'),
      SECRET_KEY: 'ab'.repeat(32),
    });

    await refusesWith(
      service,
      /^The database at \S+\/nowhere can't be reached: database "nowhere" does not exist/,
    );
  });

  it.concurrent('asks for SECRET_KEY on a server, and says how to make one', async () => {
    using folder = temporaryFolder();
    await using server = await createServerDatabase();
    await using service = spawnService({
      ...(await embedded(folder.path)),
      DATABASE_URL: server.databaseUrl,
    });

    await refusesWith(service, /^SECRET_KEY: .*openssl rand -hex 32/);
  });

  it('says that a port is busy or another process uses the data folder, and starts when both are free', async () => {
    using folder = temporaryFolder();
    const env = await prepared(folder.path);
    const squatter = createServer().listen(Number(env.GRPC_PORT), '127.0.0.1');
    await using early = spawnService(env);

    await refusesWith(
      early,
      new RegExp(`^GRPC_PORT: can't listen on 127.0.0.1:${env.GRPC_PORT}: another program`),
    );
    squatter.close();
    await using service = spawnService(env);
    const { firstKey } = await service.started();
    const statusAt = async (port: string) => {
      const headers = { authorization: `Bearer ${firstKey}` };
      return (await fetch(`http://127.0.0.1:${port}/v1/forms`, { headers })).status;
    };
    expect(await statusAt(env.PORT)).toBe(200);

    await using second = spawnService(await embedded(folder.path));
    await refusesWith(second, new RegExp(`in use by process ${service.child.pid}`));
    // A killed process leaves its lock on the folder.
    await service.stop('SIGKILL');
    const otherPorts = await embedded(folder.path);
    await using third = spawnService(otherPorts);
    expect((await third.started()).firstKey).toBeUndefined();
    expect(await statusAt(otherPorts.PORT)).toBe(200);
  });

  it('refuses another SECRET_KEY than the database was first used with, unless it is told both', async () => {
    using folder = temporaryFolder();
    await using server = await createServerDatabase();
    await using receiver = await startReceiver();
    const settings = async () => ({
      ...(await embedded(folder.path)),
      DATABASE_URL: server.databaseUrl,
      WEBHOOK_ALLOW_PRIVATE: 'true',
      LOG_LEVEL: 'info',
    });
    const env = await settings();
    const [former, current] = ['ab'.repeat(32), 'cd'.repeat(32)];
    await using first = spawnService({ ...env, SECRET_KEY: former });
    const { firstKey } = await first.started();
    await using wrong = spawnService({ ...(await settings()), SECRET_KEY: current });
    const url = `http://127.0.0.1:${env.PORT}/v1/webhooks`;
    const headers = { authorization: `Bearer ${firstKey}`, 'content-type': 'application/json' };
    const body = JSON.stringify({ url: receiver.url, events: ['submission.created'] });
    const reply = await fetch(url, { method: 'POST', headers, body });
    const made = (await reply.json()) as { webhook: { id: string }; secret: string };
    await refusesWith(wrong, /^SECRET_KEY: not the key/);
    await first.stop();

    await using both = spawnService({ ...env, SECRET_KEY: current, SECRET_KEY_PREVIOUS: former });
    let log = '';
    both.child.stderr?.on('data', (text: string) => (log += text));
    await until(() => log.includes('All stored secrets are sealed with SECRET_KEY.'));
    await both.stop();
    await using old = spawnService({ ...(await settings()), SECRET_KEY: former });
    await using last = spawnService({ ...env, SECRET_KEY: current });
    await last.started();
    await refusesWith(old, /^SECRET_KEY: not the key/);
    await fetch(`${url}/${made.webhook.id}/test`, { method: 'POST', headers });

    const [hit] = await receiver.expectRequests(1);
    const header = String(hit?.headers['x-service-signature']);
    expect(verifySignature({ header, body: hit?.body ?? '', secret: made.secret, now: Date.now() })).toBe(
      true,
    );
  });
});

const definition = JSON.stringify({
  name: 'Contact',
  slug: 'contact',
  fields: [{ id: 'email', type: 'email', required: true }],
  delivery: { type: 'email' },
});

/** Settings for a data folder with an empty database in it, which saves the service from making one. */
async function prepared(folder: string) {
  await givenEmbeddedDatabase(join(folder, 'data', 'database'));
  return embedded(folder);
}

async function embedded(folder: string) {
  mkdirSync(folder, { recursive: true });
  const [port, grpcPort] = await Promise.all([freePort(), freePort()]);
  return {
    PORT: String(port),
    GRPC_PORT: String(grpcPort),
    HOST: '127.0.0.1',
    DATA_DIR: join(folder, 'data'),
  };
}

/** What has Node run a program before its own. */
function imported(text: string): string {
  return `--import=data:text/javascript,${encodeURIComponent(text)}`;
}

/** A program by which a process waits for nothing, and its clock goes on by what it would have waited alone. */
const passesTimeAtOnce = `import timers from 'node:timers/promises';
  import { syncBuiltinESMExports } from 'node:module';
  let waited = 0;
  performance.now = () => waited;
  timers.setTimeout = async (ms, value) => { waited += ms; return value; };
  syncBuiltinESMExports();`;

/** A program that says that the app is loaded. */
const tellsLoadedApp = `import { registerHooks } from 'node:module';
  registerHooks({ load(url, context, next) {
    if (url.endsWith('/src/app.ts')) console.error('The app is loaded');
    return next(url, context);
  } });`;

/** These lines alone, exit code 1, no stack trace. */
async function refusesWith(service: SpawnedService, ...lines: RegExp[]) {
  const ended = await service.ended;
  expect(ended).toMatchObject({ code: 1, output: '' });
  expect(ended.errors.trim().split('\n')).toEqual(lines.map((line) => expect.stringMatching(line)));
  return ended;
}
