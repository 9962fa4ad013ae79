import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createServerDatabase, engines, givenEmbeddedDatabase } from '../support/database.ts';
import { spawnService, temporaryFolder } from '../support/spawn.ts';
import { KEY, settings } from './given.ts';

const FORMS = 10;

describe.each(engines)('forms as files on %s', (engine) => {
  it('are applied by another run, with one version each, wherever the first was killed', {
    timeout: 180_000,
  }, async () => {
    using folder = temporaryFolder();
    await using server = engine === 'postgres' ? await createServerDatabase() : undefined;
    if (server === undefined) await givenEmbeddedDatabase(join(folder.path, 'data', 'database'));
    const env = await settings(folder.path, server?.databaseUrl);
    const url = `http://127.0.0.1:${env.PORT}`;
    const forms = join(folder.path, 'forms');
    mkdirSync(forms);
    const write = (definition: object) => {
      for (const key of keys) writeFileSync(join(forms, `${key}.form.json`), JSON.stringify(definition));
    };

    write(definition);
    await using killed = spawnService(env);
    await killed.started();
    const begun = startCli(url, 'apply', forms, '--yes');
    await begun.says(': created');
    await killed.stop('SIGKILL');
    const failed = await begun.ended;
    await using service = spawnService(env);
    await service.started();
    const interrupted = startCli(url, 'apply', forms, '--yes');
    await interrupted.says(': created');
    interrupted.child.kill('SIGKILL');
    await interrupted.ended;
    const racing = await Promise.all([1, 2].map(() => startCli(url, 'apply', forms, '--yes').ended));

    expect(failed).toMatchObject({ code: 1, output: expect.stringContaining('forms failed') });
    expect(racing.map(({ code }) => code)).toEqual([0, 0]);
    expect((await startCli(url, 'plan', forms).ended).code).toBe(0);
    expect(await versionsOf(url)).toEqual(keys.map(() => 1));

    write({ ...definition, name: 'Changed' });
    const changing = startCli(url, 'apply', forms, '--yes');
    await changing.says(': updated');
    await service.stop('SIGKILL');
    await changing.ended;
    await using last = spawnService(env);
    await last.started();
    expect((await startCli(url, 'apply', forms, '--yes').ended).code).toBe(0);
    expect((await startCli(url, 'plan', forms).ended).code).toBe(0);
    expect(await versionsOf(url)).toEqual(keys.map(() => 2));
  });
});

const keys = Array.from({ length: FORMS }, (_, index) => `form-${index}`);

/** Runs a command of the command line as a process. */
function startCli(url: string, ...args: string[]) {
  const main = join(import.meta.dirname, '../../src/cli/main.ts');
  const env = { PATH: process.env.PATH, KEY };
  const child = spawn(process.execPath, [main, 'forms', ...args, '--server', url], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
  const ended = once(child, 'close').then(([code]: (number | null)[]) => ({ code, output }));
  return {
    child,
    ended,
    async says(text: string) {
      while (!output.includes(text)) await once(child.stdout, 'data');
    },
  };
}

/** How many versions each of the forms has; a key that two forms had would be there twice. */
async function versionsOf(url: string): Promise<number[]> {
  const get = async (path: string) => {
    const reply = await fetch(url + path, { headers: { authorization: `Bearer ${KEY}` } });
    return (await reply.json()) as { forms: { id: string }[]; versions: object[] };
  };
  const { forms } = await get('/v1/forms?limit=100&managed_by=forms');
  return Promise.all(forms.map(async ({ id }) => (await get(`/v1/forms/${id}/versions`)).versions.length));
}

const definition = {
  owner: 'owner@example.com',
  name: 'Contact',
  slug: 'contact',
  fields: [{ id: 'email', type: 'email', required: true }],
  delivery: { type: 'email' },
};
