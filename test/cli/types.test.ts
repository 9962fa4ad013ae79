import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { options } from '../domain/given.ts';
import { program } from '../support/programs.ts';
import { contactForm, startService, type TestService } from '../support/server.ts';
import { temporaryFolder } from '../support/spawn.ts';

const [email, message] = contactForm.fields;
const contact = { ...contactForm, owner: 'owner@example.com' };

it('the types of all forms of a project are a module that buf generates from and compares', async () => {
  await using service = await startService();
  await service.put('/v1/forms/by-key/contact', contact);
  await service.put('/v1/forms/by-key/survey', { ...contact, name: 'Survey' });
  await service.post('/api/forms/create', contactForm);
  using folder = temporaryFolder();
  const types = join(folder.path, 'types');

  const written = await cli(service, 'types', '--all', '--lang', 'proto', '--out', types);

  const path = (name: string) => `headlessforms/generated/${name}/${name}_answers.proto`;
  expect(written).toEqual({
    code: 0,
    text: `${join(types, path('survey'))}\n${join(types, path('contact'))}\n`,
  });
  const plugins = [{ local: 'protoc-gen-es', out: 'gen', opt: 'target=ts' }];
  writeFileSync(join(types, 'buf.gen.yaml'), JSON.stringify({ version: 'v2', plugins }));
  expect(await buf(types, 'lint')).toBe('');
  expect(await buf(types, 'generate')).toBe('');
  const generated = readFileSync(
    join(types, 'gen/headlessforms/generated/contact/contact_answers_pb.ts'),
    'utf8',
  );
  expect(generated).toContain('export type ContactAnswers = ');

  const before = join(folder.path, 'before');
  cpSync(types, before, { recursive: true });
  const renew = async (fields: unknown[]) => {
    await service.put('/v1/forms/by-key/contact', { ...contact, fields });
    await cli(service, 'types', '--all', '--lang', 'proto', '--out', types);
    return buf(types, 'breaking', '--against', before);
  };
  expect(await renew([email, message, { id: 'phone', type: 'phone' }])).toBe('');
  expect(await renew([email])).toContain('Previously present field "2" with name "message"');
  // What was changed in it stays.
  writeFileSync(join(types, 'buf.yaml'), 'version: v2\n');
  await cli(service, 'types', 'contact', '--lang', 'proto', '--out', types);
  expect(readFileSync(join(types, 'buf.yaml'), 'utf8')).toBe('version: v2\n');
}, 120_000);

it('the types of one form come in each language, by its id or key', async () => {
  await using service = await startService();
  const { json } = await service.put('/v1/forms/by-key/contact', contact);
  using folder = temporaryFolder();
  const out = ['--out', folder.path];

  await cli(service, 'types', 'contact', '--lang', 'ts', ...out);
  await cli(service, 'types', json.form.id, '--lang', 'json-schema', ...out);

  expect(readdirSync(folder.path).sort()).toEqual(['contact.schema.json', 'contact.ts']);
  const [typeScript, schema] = ['contact.ts', 'contact.schema.json'].map((name) =>
    readFileSync(join(folder.path, name), 'utf8'),
  );
  expect(typeScript).toContain('export type ContactAnswers = {');
  expect(JSON.parse(schema ?? '')).toMatchObject({ title: 'ContactAnswers', 'x-form-version': 1 });
});

it('the types of a file are those that applying it gives, but for the mark, and break a build before', async () => {
  await using service = await startService();
  using folder = temporaryFolder();
  const [forms, out, applied] = ['forms', 'out', 'applied'].map((name) => join(folder.path, name));
  const file = join(forms ?? '', 'contact.form.json');
  mkdirSync(forms ?? '');
  const write = (fields: unknown[]) => writeFileSync(file, JSON.stringify({ ...contact, fields }));
  const generate = (to = '') => cli(service, 'types', '--file', file, '--lang', 'ts', '--out', to);
  const read = (from = '') => readFileSync(join(from, 'contact.ts'), 'utf8').replace(/^(\/\/ .*\n)+/, '');
  const topic = { id: 'topic', type: 'select', options: options('forms', 'exports') };

  // Of a form that there is not yet, and of the next version.
  for (const fields of [
    [email, message],
    [email, topic],
  ]) {
    write(fields);
    expect(await generate(out)).toEqual({ code: 0, text: `${join(out ?? '', 'contact.ts')}\n` });
    const { json } = await service.put('/v1/forms/by-key/contact', { ...contact, fields });
    await cli(service, 'types', 'contact', '--lang', 'ts', '--out', applied ?? '');
    expect(json.outcome).toMatch(/created|updated/);
    expect(readFileSync(join(out ?? '', 'contact.ts'), 'utf8')).toContain('provisional');
    expect(read(out)).toBe(read(applied));
  }

  writeFileSync(
    join(out ?? '', 'use.ts'),
    `import type { ContactAnswers } from './contact.ts';
     export const topicOf = ({ topic }: ContactAnswers): string => topic ?? '';`,
  );
  const build = () =>
    run('tsc', ['--ignoreConfig', '--noEmit', '--strict', '--allowImportingTsExtensions', 'use.ts'], {
      cwd: out,
      env: { ...process.env, PATH: `${join(root, 'node_modules/.bin')}:${process.env.PATH}` },
    });
  await build();
  write([email, message]);
  await generate(out);
  await expect(build()).rejects.toMatchObject({ stdout: expect.stringContaining("'topic' does not exist") });
}, 120_000);

it('types that can not be written are refused, and none are', async () => {
  await using service = await startService();
  using folder = temporaryFolder();
  const out = ['--out', join(folder.path, 'types')];
  const refused = async (...args: string[]) => {
    const { code, text } = await cli(service, 'types', ...args);
    expect(code).toBe(1);
    expect(existsSync(join(folder.path, 'types'))).toBe(false);
    return text;
  };

  expect(await refused('--all', '--lang', 'proto', ...out)).toContain('There are no published forms');
  await service.put('/v1/forms/by-key/con-tact', contact);
  await service.put('/v1/forms/by-key/con.tact', contact);
  expect(await refused('--all', '--lang', 'proto', ...out)).toMatch(/^con.tact and con.tact are both /);
  expect(await refused('con_tact', '--lang', 'proto', ...out)).toContain('No form has the key con_tact');
  expect(await refused(`form_${'0'.repeat(26)}`, '--lang', 'proto', ...out)).toContain(
    'There is no such form',
  );
  expect(await refused('con-tact', '--lang', 'java', ...out)).toContain(
    '--lang: Expected one of proto, ts, json-schema',
  );
  expect(await refused('con-tact', '--all', '--lang', 'ts', ...out)).toContain('either FORM');
  expect(await refused('con-tact', '--lang', 'ts')).toContain('--out is missing');
  expect(await refused('con-tact', '--file', 'x', '--lang', 'ts', ...out)).toContain('either FORM');
  const file = join(folder.path, 'bad.form.yaml');
  const ofFile = () => refused('--file', file, '--lang', 'ts', ...out);
  expect(await ofFile()).toBe(`${file}: ENOENT: no such file or directory, open '${file}'\n`);
  writeFileSync(file, 'name: Bad\nslug: bad\nfields: []\n');
  expect(await ofFile()).toContain(`${file}:3:1: fields: `);
  await service.post(
    `/v1/forms/${(await service.put('/v1/forms/by-key/gone', contact)).json.form.id}/archive`,
  );
  writeFileSync(file, JSON.stringify({ ...contact, key: 'gone' }));
  expect(await ofFile()).toContain('The form is archived');
});

/** What the command line says, and how it ends. */
async function cli(service: TestService, ...args: string[]): Promise<{ code: number; text: string }> {
  const all = [...program('cli'), 'forms', ...args, '--server', service.url];
  const env = { ...process.env, KEY: service.key };
  return run(process.execPath, all, { env }).then(
    ({ stdout }) => ({ code: 0, text: stdout }),
    ({ code, stdout, stderr }) => ({ code, text: stdout + stderr }),
  );
}

/** What buf finds in a folder; nothing if all is well. */
async function buf(cwd: string, ...args: string[]): Promise<string> {
  const env = { ...process.env, PATH: `${join(root, 'node_modules/.bin')}:${process.env.PATH}` };
  return run('buf', args, { cwd, env }).then(
    ({ stdout, stderr }) => stdout + stderr,
    ({ stdout, stderr }) => stdout + stderr,
  );
}

const root = join(import.meta.dirname, '../..');
const run = promisify(execFile);
