import { execFile } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { FormsService } from '../../gen/headlessforms/v1/forms_pb.js';
import { checkDefinitions } from '../../src/cli/admin/doctor/database.ts';
import { runFormsCommand } from '../../src/cli/forms/run.ts';
import { RefusedError } from '../../src/cli/terminal.ts';
import { changeKinds, consumers } from '../../src/domain/contracts/field-changes.ts';
import { fingerprint } from '../../src/domain/json/json-text.ts';
import { engines } from '../support/database.ts';
import { fencedBlocks, readDocument } from '../support/documents.ts';
import { program } from '../support/programs.ts';
import { contactForm, startService, type TestService } from '../support/server.ts';
import { temporaryFolder } from '../support/spawn.ts';

const owner = 'owner@example.com';
const scopes = ['forms:read', 'forms:publish', 'forms:write', 'webhooks:read', 'webhooks:write'];
const webhook = (secret?: string) => ({
  delivery: { type: 'webhook', url: 'https://hooks.example.com/in', ...(secret && { secret }) },
});

describe.each(engines)('forms as files, on %s', (engine) => {
  it('are planned, applied and then equal, from JSON and YAML', async () => {
    await using service = await startService({ engine });
    using folder = await givenFolder(service, {
      'contact.form.json': JSON.stringify({ $schema: 'x', owner, ...contactForm }, null, '\t'),
      'survey.form.yaml': surveyYaml,
      'README.md': 'no form',
    });

    expect(await folder.run('plan')).toMatchObject({ code: 2 });
    const applied = await folder.run('apply', { yes: true });

    expect(applied.code).toBe(0);
    expect(applied.lines).toContain(`+ contact: create (${join(folder.path, 'contact.form.json')})`);
    expect(applied.lines).toContain('survey-2: created');
    expect(await folder.run('plan')).toEqual({ code: 0, lines: ['0 of 2 forms change.'], notes: [] });
    const { forms } = (await service.get(`/v1/forms?managed_by=${folder.name}`)).json;
    expect(forms.map(({ key, status }: Listed) => [key, status])).toEqual([
      ['survey-2', 'published'],
      ['contact', 'published'],
    ]);
  });

  it('show what breaks whom, and end with 3 then', async () => {
    await using service = await startService({ engine });
    using folder = await givenFolder(service, { 'contact.form.json': { owner, ...contactForm } });
    await folder.run('apply', { yes: true });
    const [email] = contactForm.fields;

    folder.write('contact.form.json', { owner, ...contactForm, name: 'Talk to us' });
    const harmless = await folder.run('plan');
    folder.write('contact.form.json', { owner: 'other@example.com', ...contactForm, fields: [email] });
    const breaking = await folder.run('plan');
    const { lines } = await folder.run('plan', { json: true });

    expect(harmless).toMatchObject({ code: 2 });
    expect(harmless.lines).toContain('    ~ name: text changed');
    expect(breaking.code).toBe(3);
    expect(breaking.lines).toContain(
      '    - fields.message: field removed, breaks clients, webhooks, csv, prefill, sessions',
    );
    expect(breaking.lines).toContain('    ~ owner: owner@example.com -> other@example.com');
    expect(JSON.parse(lines.join(''))).toMatchObject({
      forms: [{ key: 'contact', action: 'update', breaking: true, changes: [{ kind: 'field_removed' }] }],
    });
    expect((await versionsOf(service, 'contact')).length).toBe(1);
  });

  it('show how many webhooks name a field that goes', async () => {
    await using service = await startService({ engine });
    using folder = await givenFolder(service, { 'contact.form.json': { owner, ...contactForm } });
    await folder.run('apply', { yes: true });
    const template = { text: '{{data.answers.message}}' };
    const events = ['submission.created'];
    await service.post('/v1/webhooks', { url: 'https://hooks.example.com/in', events, template });
    folder.write('contact.form.json', { owner, ...contactForm, fields: contactForm.fields.slice(0, 1) });

    expect((await folder.run('plan')).lines[1]).toMatch(/, webhook templates with it: 1$/);
  });

  it('are refused with file, line and path of every problem, and nothing is applied', async () => {
    await using service = await startService({ engine });
    using folder = await givenFolder(service, {
      'good.form.json': { owner, ...contactForm },
      'UP.form.json': { owner, ...contactForm },
      'nobody.form.json': JSON.stringify({ ...contactForm, owner: 'nobody' }, null, 2),
      'bad.form.yaml': `${surveyYaml}extra: 1\nsettings:\n  allowPartial: perhaps\n`,
      'cut.form.json': '{\n  "name": ',
      'literal.form.json': JSON.stringify({ ...contactForm, ...webhook('a-secret-in-the-open') }),
      'twice.form.json': { key: 'good', owner, ...contactForm },
    });

    const refused = await folder.refusal('apply', { yes: true });

    const at = (line: string) => join(folder.path, line);
    for (const line of [
      at('bad.form.yaml:8:1: extra: '),
      at('bad.form.yaml:10:3: settings.allowPartial: '),
      at('cut.form.json:2:'),
      at('literal.form.json:1:'),
      at('nobody.form.json:18:3: owner: Expected an email address'),
      at('UP.form.json:1:1: The key UP needs'),
      at('twice.form.json:1:2: key: '),
      'Nothing was applied.',
    ]) {
      expect(refused).toContain(line);
    }
    expect(refused).toContain('delivery.secret: Name the environment variable');
    expect(refused).not.toContain('a-secret-in-the-open');
    expect(await keysOf(service)).toEqual([]);
  });

  it('are refused with their lines where only the service knows, before anything is applied', async () => {
    await using service = await startService({ engine, env: { WEBHOOK_ALLOW_PRIVATE: 'false' } });
    using folder = await givenFolder(service, {
      'contact.form.json': { owner, ...contactForm },
      'ownerless.form.yaml': surveyYaml.replace(/owner: .*\n/, '').replace('key: survey-2\n', ''),
      'hook.form.json': JSON.stringify({ ...contactForm, ...webhook(variable('HOOK_SECRET')) }, null, 2),
      'private.form.json': JSON.stringify(
        {
          ...contactForm,
          delivery: { type: 'webhook', url: 'http://127.0.0.1/in', secret: variable('SET') },
        },
        null,
        2,
      ),
    });

    const refused = await folder.refusal('apply', { yes: true }, { SET: 'x'.repeat(24) });

    expect(refused).toContain(
      'hook.form.json:18:5: delivery.secret: The environment variable HOOK_SECRET is not set',
    );
    expect(refused).toContain('ownerless.form.yaml:1:1: owner: Required');
    expect(refused).toContain('private.form.json:17:5: delivery.url: ');
    expect(await keysOf(service)).toEqual([]);
  });

  it('give a new webhook the secret of the environment, and never change it again', async () => {
    await using service = await startService({ engine });
    using folder = await givenFolder(service, {
      'hook.form.json': { ...contactForm, ...webhook(variable('HOOK')) },
    });

    const applied = await folder.run('apply', { yes: true, json: true }, { HOOK: 'x'.repeat(24) });

    expect(applied.lines.join('')).not.toContain('xxxx');
    expect(JSON.parse(applied.lines.join('')).forms).toMatchObject([{ outcome: 'created' }]);
    expect((await folder.run('plan')).code).toBe(0);
  });

  it('are equal while a new owner has not confirmed', async () => {
    await using service = await startService({ engine });
    using folder = await givenFolder(service, { 'contact.form.json': { owner, ...contactForm } });
    const all = await service.givenKey(['*']);
    await folder.run('apply', { yes: true }, {}, all);
    folder.write('contact.form.json', { owner: 'new@example.com', ...contactForm });

    const changed = await folder.run('apply', { yes: true }, {}, all);
    const again = await folder.run('apply', { yes: true }, {}, all);

    expect(changed.lines).toContain('contact: updated');
    expect(again.lines).toEqual(['0 of 1 forms change.']);
    expect((await folder.run('plan')).code).toBe(0);
    expect((await service.get('/v1/forms?key=contact')).json.forms).toMatchObject([
      { owner_email: owner, pending_owner_email: 'new@example.com' },
    ]);
    folder.write('contact.form.json', { owner, ...contactForm });
    expect((await folder.run('plan')).code).toBe(0);
  });

  it('that one fails stops no other, and running again finishes', async () => {
    await using service = await startService({ engine });
    const files = { 'a.form.json': { owner, ...contactForm }, 'b.form.json': { owner, ...contactForm } };
    using folder = await givenFolder(service, files);
    await folder.run('apply', { yes: true });
    folder.write('a.form.json', { ...files['a.form.json'], delivery: { type: 'email', subject: 'New' } });
    folder.write('b.form.json', { ...files['b.form.json'], name: 'New' });
    const weak = await service.givenKey(['forms:read', 'forms:publish']);

    const partly = await folder.run('apply', { yes: true }, {}, weak);
    const rest = await folder.run('apply', { yes: true });

    expect(partly.code).toBe(1);
    expect(partly.lines).toContainEqual(expect.stringMatching(/^a: failed: /));
    expect(partly.lines).toContain('b: updated');
    expect(rest.code).toBe(0);
    expect(rest.lines.filter((line) => line.endsWith(': updated'))).toEqual(['a: updated']);
    expect((await folder.run('plan')).code).toBe(0);
  });

  it('make one version if they are applied twice at once', async () => {
    await using service = await startService({ engine });
    using folder = await givenFolder(service, { 'contact.form.json': { owner, ...contactForm } });

    const both = await Promise.all([folder.run('apply', { yes: true }), folder.run('apply', { yes: true })]);

    expect(both.map(({ code }) => code)).toEqual([0, 0]);
    expect((await versionsOf(service, 'contact')).length).toBe(1);
  });

  it('obey the compatibility of the form unless they are told', async () => {
    await using service = await startService({ engine });
    const promised = { owner, ...contactForm, settings: { compatibility: 'full' } };
    using folder = await givenFolder(service, { 'contact.form.json': promised });
    await folder.run('apply', { yes: true });
    folder.write('contact.form.json', { ...promised, fields: contactForm.fields.slice(0, 1) });

    expect(await folder.refusal('apply', { yes: true })).toContain('contact: breaks what the form promises');
    expect((await versionsOf(service, 'contact')).length).toBe(1);
    expect(await folder.run('apply', { yes: true, allowBreaking: true })).toMatchObject({ code: 0 });
    expect((await versionsOf(service, 'contact')).length).toBe(2);
  });

  it('archive with --prune what the folder keeps and no longer has, and nothing else', async () => {
    await using service = await startService({ engine });
    const file = { owner, ...contactForm };
    using folder = await givenFolder(service, { 'kept.form.json': file, 'gone.form.json': file });
    using other = await givenFolder(service, { 'other.form.json': file });
    await folder.run('apply', { yes: true });
    await other.run('apply', { yes: true, managedBy: 'elsewhere' });
    folder.remove('gone.form.json');

    const without = await folder.run('plan');
    const pruned = await folder.run('apply', { yes: true, prune: true });

    expect(without.code).toBe(0);
    expect(pruned.lines).toContain('gone: archived');
    const { forms } = (await service.get('/v1/forms')).json;
    const archived = forms.filter(({ status }: Listed) => status === 'archived');
    expect(archived.map(({ key }: Listed) => key)).toEqual(['gone']);
    expect((await folder.run('plan', { prune: true })).code).toBe(0);
    folder.write('gone.form.json', file);
    expect(await folder.refusal('plan')).toMatch(
      /gone\.form\.json:1:1: key: The form form_\w+ .* is archived/,
    );
  });

  it('that are exported plan no change, whoever keeps them', async () => {
    await using service = await startService({ engine });
    const cases = { ...contactForm, ...webhook(), fields: everyField };
    const made = await service.put('/v1/forms/by-key/all', { ...cases, managed_by: 'elsewhere' });
    expect([made.status, made.text]).toEqual([200, expect.anything()]);
    await service.put('/v1/forms/by-key/con.tact', { ...contactForm, owner });
    await service.givenPublishedForm();
    using folder = await givenFolder(service, {});

    const exported = await folder.run('export');

    expect(readdirSync(folder.path).sort()).toEqual(['all.form.json', 'con.tact.form.json']);
    expect(exported.notes).toEqual([expect.stringContaining('forms have no key')]);
    expect(await folder.run('plan', { prune: true })).toMatchObject({ code: 0 });
    const reply = await fetch(new URL('/schemas/form.json', service.url));
    const schema = (await reply.json()) as object;
    const ajv = new Ajv2020({ strict: false });
    addFormats.default(ajv);
    const isValid = ajv.compile(schema);
    for (const name of readdirSync(folder.path)) {
      const file = JSON.parse(readFileSync(join(folder.path, name), 'utf8'));
      expect(file.$schema).toBe(`${service.url}/schemas/form.json`);
      expect([isValid(file), isValid.errors]).toEqual([true, null]);
      expect(isValid({ ...file, unknown: 1 })).toBe(false);
    }
    expect(await folder.refusal('export')).toContain('It has forms already');
  });

  it('go on as they are where they could not be published today, with a warning', async () => {
    await using service = await startService({ engine });
    const fields = [
      { id: 'agreed', type: 'checkbox' },
      { id: 'why', type: 'text', visibleWhen: { field: 'agreed', op: 'eq', value: 'true' } },
    ];
    const definition = { ...contactForm, fields };
    const made = await givenOldForm(service, 'old', definition);
    using folder = await givenFolder(service, { 'old.form.json': { owner, ...definition } });

    const planned = await folder.run('plan');
    const applied = await service.put('/v1/forms/by-key/old', definition);
    const published = await service.post(`/v1/forms/${made.id}/versions`, definition);
    const changed = { ...definition, name: 'Another' };
    const path = 'fields.1.visibleWhen.value';
    const refused = [
      await service.put('/v1/forms/by-key/old', changed),
      await service.post(`/v1/forms/${made.id}/versions`, changed),
      await service.put('/v1/forms/by-key/new', { owner, ...definition }),
      await service.post('/api/forms/create', definition),
      await service.post('/v1/forms/validate', definition),
    ];
    folder.write('old.form.json', { owner, ...changed });

    const place = `${join(folder.path, 'old.form.json')}:1:`;
    expect(planned).toMatchObject({ code: 0 });
    expect(planned.lines).toEqual([
      expect.stringMatching(`^! old: could not be published today: ${place}\\d+: ${path}: `),
      '0 of 1 forms change.',
    ]);
    expect([applied.status, applied.json.outcome]).toEqual([200, 'unchanged']);
    expect([published.status, published.json.version.number]).toEqual([201, 1]);
    for (const { status, json } of refused) {
      expect([status, json.error.details.map((detail: { path: string }) => detail.path)]).toEqual([
        422,
        [path],
      ]);
    }
    expect(await folder.refusal('plan')).toContain(path);
    expect((await service.get(`/f/${made.id}`, { key: null })).status).toBe(200);
    const findings: string[] = [];
    for await (const { text } of checkDefinitions(service.database)) findings.push(text);
    expect(findings).toEqual([
      expect.stringContaining(`${made.id}, version 1, ${path}: could not be published today.`),
    ]);
  });

  it('warn of options that read the same', async () => {
    await using service = await startService({ engine });
    const options = ['a', 'b'].map((value) => ({ label: 'Same', value }));
    const form = { ...contactForm, owner, fields: [{ id: 'it', type: 'radio', options }] };
    using folder = await givenFolder(service, { 'same.form.json': form });

    const planned = await folder.run('plan');
    const { lines } = await folder.run('plan', { json: true });

    expect(planned.lines).toContainEqual('! same: “it” has choices that read the same.');
    expect(JSON.parse(lines.join('')).forms[0].warnings).toHaveLength(1);
  });

  it('need webhooks:read to be exported with webhooks', async () => {
    await using service = await startService({ engine });
    await service.put('/v1/forms/by-key/hook', { ...contactForm, ...webhook() });
    using folder = await givenFolder(service, {});
    const weak = await service.givenKey(['forms:read']);

    expect(await folder.refusal('export', {}, {}, weak)).toContain('needs the scope webhooks:read');
    expect(readdirSync(folder.path)).toEqual([]);
  });
});

describe('the command line', () => {
  it('ends with 2 for changes and with 1 for errors, and applies nothing unasked', async () => {
    await using service = await startService();
    using folder = await givenFolder(service, { 'contact.form.json': { owner, ...contactForm } });
    const cli = async (...args: string[]) => {
      const env = { ...process.env, KEY: service.key };
      const all = [...program('cli'), 'forms', ...args, '--server', service.url];
      return promisify(execFile)(process.execPath, all, { env }).then(
        ({ stdout }) => ({ code: 0, text: stdout }),
        ({ code, stdout, stderr }) => ({ code, text: stdout + stderr }),
      );
    };

    expect(await cli('plan', folder.path)).toMatchObject({ code: 2 });
    expect(await cli('apply', folder.path)).toMatchObject({
      code: 1,
      text: expect.stringContaining('--yes'),
    });
    expect(await cli('plan', join(folder.path, 'missing'))).toMatchObject({ code: 1 });
    expect(await cli('plan', folder.path, '--key', 'wrong')).toMatchObject({ code: 1 });
    expect(await cli('plan')).toMatchObject({ code: 1, text: expect.stringContaining('Missing DIR') });
    expect(await keysOf(service)).toEqual([]);
    expect(await cli('apply', folder.path, '--yes')).toMatchObject({ code: 0 });
    expect(await cli('plan', folder.path)).toMatchObject({ code: 0 });
  });
});

describe('the table of what a new version breaks', () => {
  it('has each kind of change, and whom it breaks', () => {
    const section = readDocument('docs/contracts.md').split('## What a new version breaks')[1] ?? '';
    const rows = [...section.matchAll(/^\| `(\w+)` \| ([\w, ]+) \| .+ \|$/gm)];
    const whole = { nobody: [], all: [...consumers] } as Record<string, string[]>;

    const documented = rows.map(([, kind, breaks = '']) => [kind, whole[breaks] ?? breaks.split(', ')]);
    const known = Object.entries(changeKinds).map(([kind, { breaks }]) => [kind, [...breaks]]);

    expect(documented).toEqual(known);
    for (const direction of ['backward', 'forward'] as const) {
      const [, listed = ''] =
        new RegExp(`^\\| \`${direction}\` \\| [^:]*: (.*) \\|$`, 'm').exec(section) ?? [];
      const refused = Object.entries(changeKinds).filter(([, verdict]) => !verdict[direction]);
      expect(listed.replaceAll('`', '').split(', ')).toEqual(refused.map(([kind]) => kind));
    }
  });
});

describe('the workflows of the documents', () => {
  it('plan as the text of a comment, and apply', async () => {
    await using service = await startService();
    using folder = await givenFolder(service, { 'contact.form.json': { owner, ...contactForm } });
    const [github, gitlab] = fencedBlocks(readDocument('docs/contracts.md'))
      .filter(({ language, text: block }) => language === 'yaml' && block.includes('npm ci'))
      .map(({ text: block }) => parse(block));
    const steps: { run?: string }[] = github.jobs.forms.steps;
    const [, comment = '', applyStep = ''] = steps.flatMap(({ run = [] }) => run);
    writeFileSync(join(folder.path, 'gh'), '#!/bin/sh\necho "$*"\n', { mode: 0o755 });
    const script = async (lines: string) => {
      const here = lines
        .replaceAll(/(plan|apply) forms /g, `$1 ${folder.path} `)
        .replaceAll('plan.txt', '$OUT');
      const text = here.replaceAll(/\$\{\{ github.event.number \}\}/g, '7');
      const PATH = `${folder.path}:${process.env.PATH}`;
      const env = {
        ...process.env,
        PATH,
        OUT: join(folder.path, 'plan.txt'),
        KEY: service.key,
        SERVER: service.url,
      };
      const cwd = join(import.meta.dirname, '../..');
      return (await promisify(execFile)('bash', ['-ec', text], { cwd, env })).stdout;
    };

    const commented = await script(comment);
    const planned = await script(gitlab['forms:plan'].script.slice(1).join('\n'));
    const applied = await script(applyStep);
    const again = await script(gitlab['forms:apply'].script.slice(1).join('\n'));

    expect(commented).toMatch(
      /^pr comment 7 --body ```diff\n\+ contact: create .*\n1 of 1 forms change\.\n```\n$/,
    );
    expect(planned).toContain('+ contact: create');
    expect(applied).toContain('contact: created');
    expect(again).toBe('0 of 1 forms change.\n');
  });
});

/** A variable of the environment, as files name it. */
const variable = (name: string) => `\${${name}}`;

const surveyYaml = `key: survey-2
owner: owner@example.com
name: Survey
slug: survey
fields: # one
  - { id: mood, type: rating }
delivery: { type: email }
`;

const everyField = [
  { id: 'email', type: 'email', required: true, label: 'Email' },
  {
    id: 'kind',
    type: 'select',
    options: [
      { value: 'a', label: 'A' },
      { value: 'b', label: 'B' },
    ],
    defaultValue: 'a',
  },
  { id: 'why', type: 'textarea', visibleWhen: { field: 'kind', op: 'eq', value: 'a' } },
  {
    id: 'grid',
    type: 'matrix',
    rows: [
      { value: 'x', label: 'X' },
      { value: 'y', label: 'Y' },
    ],
    options: [{ value: '1', label: '1' }],
  },
  { id: 'count', type: 'number', min: 0, max: 9, step: 1 },
  { id: 'when', type: 'datetime' },
  { id: 'cv', type: 'file', accept: ['application/pdf'] },
];

/** A published form of a version of the service that took its definition. */
async function givenOldForm(service: TestService, key: string, definition: typeof contactForm) {
  const harmless = definition.fields.map(({ id, type }) => ({ id, type }));
  const { form } = (
    await service.put(`/v1/forms/by-key/${key}`, {
      owner,
      managed_by: 'forms',
      ...definition,
      fields: harmless,
    })
  ).json;
  const [row] = await service.database.select('select definition from form_versions where form_id = $1', [
    form.id,
  ]);
  const former = typeof row?.definition === 'string' ? JSON.parse(row.definition) : row?.definition;
  const old = {
    ...former,
    fields: former.fields.map((field: object, n: number) => ({ ...field, ...definition.fields[n] })),
  };
  await service.database.execute(
    'update form_versions set definition = $1::jsonb, checksum = $2 where form_id = $3',
    [JSON.stringify(old), fingerprint(old), form.id],
  );
  return form;
}

/** A folder with these files, objects as JSON, and what runs the commands on it. */
async function givenFolder(service: TestService, files: Record<string, string | object>) {
  const temporary = temporaryFolder();
  const path = join(temporary.path, 'forms');
  mkdirSync(path);
  const write = (name: string, content: string | object) =>
    writeFileSync(join(path, name), typeof content === 'string' ? content : JSON.stringify(content));
  for (const [name, content] of Object.entries(files)) write(name, content);
  const strong = await service.givenKey(scopes);

  async function run(command: Command, flags: Flags = {}, env: NodeJS.ProcessEnv = {}, key = strong) {
    const lines: string[] = [];
    const notes: string[] = [];
    const terminal = {
      env,
      print: (line: string) => lines.push(line),
      note: (line: string) => notes.push(line),
    };
    const code = await runFormsCommand(
      command,
      { folder: path, server: service.url, key, ...flags },
      terminal,
    );
    return { code, lines, notes };
  }

  return {
    path,
    name: basename(path),
    write,
    remove: (name: string) => rmSync(join(path, name)),
    run,
    /** What a command that is refused says. */
    async refusal(...args: Parameters<typeof run>): Promise<string> {
      const error = await run(...args).catch((thrown: unknown) => thrown);
      if (!(error instanceof RefusedError)) throw new Error(`Not refused: ${JSON.stringify(error)}`);
      return error.message;
    },
    [Symbol.dispose]: () => temporary[Symbol.dispose](),
  };
}

async function keysOf(service: TestService): Promise<string[]> {
  const { forms } = await service.client(FormsService).listForms({});
  return forms.map(({ key }) => key).filter((key) => key !== '');
}

async function versionsOf(service: TestService, key: string) {
  const forms = service.client(FormsService);
  const [form] = (await forms.listForms({ key })).forms;
  return (await forms.listFormVersions({ formId: form?.id ?? '' })).versions;
}

type Command = Parameters<typeof runFormsCommand>[0];
type Flags = Partial<Parameters<typeof runFormsCommand>[1]>;
type Listed = { key: string; status: string };
