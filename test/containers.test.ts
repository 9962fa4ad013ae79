import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { copyFileSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { createServerDatabase } from './support/database.ts';
import { inDatabase, runOn } from './support/postgres.ts';
import { freePort, spawnService, temporaryFolder } from './support/spawn.ts';

const root = join(import.meta.dirname, '..');
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const composeFiles = ['compose.yaml', 'ops/container/compose.ha.yaml'];

describe('the secrets of containers', () => {
  it('are made once, in a folder that only their user can open', () => {
    using folder = temporaryFolder();
    const script = join(folder.path, 'make-secrets');
    copyFileSync(join(root, 'ops/container/make-secrets'), script);
    const secrets = join(folder.path, 'secrets');
    const made = () => {
      execFileSync(script);
      return Object.fromEntries(
        readdirSync(secrets).map((name) => [name, readFileSync(join(secrets, name), 'utf8')]),
      );
    };

    const first = made();
    writeFileSync(join(secrets, 'database_password'), 'of before');

    expect(statSync(secrets).mode & 0o777).toBe(0o700);
    expect(first.database_url).toBe(`postgres://forms:${first.database_password?.trim()}@database/forms\n`);
    expect(new Set(Object.values(first)).size).toBe(5);
    expect(made()).toEqual({ ...first, database_password: 'of before' });
  });

  it.each(composeFiles)('are all that %s has of passwords and keys, and it has each', (path) => {
    const { services, secrets } = parse(read(path), { merge: true }) as Compose;
    const inEnvironment = Object.values(services).flatMap(({ environment = {} }) =>
      Object.entries(environment).filter(
        ([name, value]) =>
          /PASSWORD|SECRET|KEY|DATABASE_URL/.test(name) && !value.startsWith('/run/secrets/'),
      ),
    );
    const used = Object.values(services).flatMap((service) => service.secrets ?? []);

    expect(inEnvironment).toEqual([]);
    expect([...new Set(used)].sort()).toEqual(Object.keys(secrets).sort());
    for (const [name, { file }] of Object.entries(secrets)) {
      expect(join(root, path, '..', file)).toBe(join(root, 'ops/container/secrets', name));
      expect(read('ops/container/make-secrets')).toContain(name);
    }
  });

  it('and .env come into no image and no repository', () => {
    for (const [path, names] of [
      ['.dockerignore', ['.env', '**/.env', 'ops/container/secrets']],
      ['ops/container/.dockerignore', ['.env', 'secrets']],
      ['.gitignore', ['.env', 'ops/container/secrets/']],
    ] as const)
      expect([path, read(path).split('\n')]).toEqual([path, expect.arrayContaining([...names])]);
  });
});

describe('the images of containers', () => {
  it.each([...composeFiles, 'Dockerfile', 'ops/container/patroni.Dockerfile'])(
    'are named by full versions in %s, which says how to pin them',
    (path) => {
      const named = [...read(path).matchAll(/^(?: *image:|FROM) (\S+)$/gm)].map(([, image]) => image);

      expect(named.length).toBeGreaterThan(0);
      expect(named.filter((image) => !/:v?\d+\.\d+(\.\d+)?(-slim)?$/.test(image ?? ''))).toEqual([]);
      expect(read(path)).toMatch(/add its digest.*@sha256:…/);
    },
  );
});

describe('the role of the service', () => {
  it('is its own, owns its database, and is all that the service needs', async () => {
    await using server = await createServerDatabase({ migrated: false });
    const role = `forms_${randomBytes(6).toString('hex')}`;
    // What psql does with it.
    const script = read('ops/container/roles.sql')
      .replaceAll(/^(--|\\).*$/gm, '')
      .replaceAll(":'password'", "'of-the-role'")
      .replaceAll(/\bforms\b/g, role);
    for (const statement of script.split(';')) await runOn(server.adminUrl, statement);
    using folder = temporaryFolder();
    const [url, key] = ['database_url', 'secret_key'].map((name) => join(folder.path, name)) as [
      string,
      string,
    ];
    const databaseUrl = new URL(inDatabase(server.adminUrl, role));
    databaseUrl.username = role;
    databaseUrl.password = 'of-the-role';
    writeFileSync(url, `${databaseUrl.href}\n`);
    writeFileSync(key, `${'ab'.repeat(32)}\n`);
    const [port, grpcPort] = [await freePort(), await freePort()];

    try {
      await using service = spawnService({
        PORT: String(port),
        GRPC_PORT: String(grpcPort),
        DATA_DIR: folder.path,
        DATABASE_URL_FILE: url,
        SECRET_KEY_FILE: key,
      });
      await service.started();
      const answers = { name: 'Ada', email: 'ada@example.com', message: 'Hello' };
      const { status } = await fetch(`http://127.0.0.1:${port}/api/demo`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ answers }),
      });
      const [rights] = await runOn(
        server.adminUrl,
        `select rolsuper, rolcreatedb, rolcreaterole, rolbypassrls, rolreplication from pg_roles where rolname = '${role}'`,
      );

      expect(status).toBe(201);
      expect(Object.values(rights ?? {})).toEqual([false, false, false, false, false]);
      await expect(runOn(databaseUrl.href, 'select * from pg_authid')).rejects.toThrow('permission denied');
    } finally {
      await runOn(server.adminUrl, `drop database if exists ${role} with (force)`);
      await runOn(server.adminUrl, `drop role if exists ${role}`);
    }
  });
});

type Compose = {
  services: Record<string, { environment?: Record<string, string>; secrets?: string[] }>;
  secrets: Record<string, { file: string }>;
};
