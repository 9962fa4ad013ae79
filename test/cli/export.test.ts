import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { sealedColumnsOf } from '../../src/store/database/columns.ts';
import { entities } from '../../src/store/database/engine.ts';
import { type ExportName, exportNames, exportTables } from '../../src/store/projects/project-export.ts';
import { sealedTables } from '../../src/store/sealed-secrets.ts';
import { engines } from '../support/database.ts';
import { admin, givenInstallation } from '../support/installation.ts';
import { spawnService, temporaryFolder } from '../support/spawn.ts';

describe.each(engines)('admin export on %s', (engine) => {
  it('writes all of a project that is there, and nothing of others, beside the service and without it', async () => {
    await using installation = await givenInstallation(engine);
    using target = temporaryFolder();
    const { env } = installation;
    await using service = spawnService(env);
    const { firstKey = '' } = await service.started();
    const shop = (await admin(['keys', 'create', '--project', 'shop'], env)).output.trim();
    const given = await givenThings(env, shop);
    await givenThings(env, firstKey);
    const running = join(target.path, 'running');
    const stopped = join(target.path, 'stopped');
    const used = join(target.path, 'used');
    mkdirSync(used);
    writeFileSync(join(used, 'mine'), 'x');

    const exported = await admin(['export', 'shop', running], env);
    const again = await admin(['export', 'shop', running], env);
    const absent = await admin(['export', 'none', join(target.path, 'new')], env);
    const nowhere = await admin(['export', 'default'], env);
    const mixed = await admin(['export', 'default', used], env);
    await service.stop();
    const later = await admin(['export', 'shop', stopped], env);

    expect(exported).toMatchObject({ code: 0, output: '' });
    expect(exported.errors).toMatch(
      /^Exported shop to \S+: 1 forms, 1 versions, 2 submissions, 1 sessions, 1 webhooks/m,
    );
    expect(exported.errors).toContain('1 uploads, 1 files.');
    expect(again).toMatchObject({ code: 1, errors: expect.stringMatching(/is not empty/) });
    expect(absent).toMatchObject({
      code: 1,
      errors: expect.stringMatching(/There is no project named none\.$/m),
    });
    expect(nowhere.code).toBe(2);
    expect(mixed.code).toBe(1);
    expect(readFileSync(join(used, 'mine'), 'utf8')).toBe('x');
    expect(later.code).toBe(0);
    const rows = (name: string, folder = running) => {
      const lines = readFileSync(join(folder, `${name}.ndjson`), 'utf8')
        .split('\n')
        .slice(0, -1);
      return lines.map((line) => JSON.parse(line));
    };
    expect(rows('submissions').map(({ answers }) => answers.text)).toEqual(['One\u2028two', 'three']);
    expect(rows('submissions')).toEqual(rows('submissions', stopped));
    expect(rows('sessions').map(({ id }) => id)).toEqual([given.sessionId]);
    expect(rows('forms')).toMatchObject([{ id: given.formId, owner_email: 'owner@example.com' }]);
    expect(readFileSync(join(running, 'files', given.uploadId), 'utf8')).toBe('my life');
    for (const name of readdirSync(running, { recursive: true })) {
      const file = statSync(join(running, String(name)));
      expect([name, file.mode & 0o777]).toEqual([name, file.isDirectory() ? 0o700 : 0o600]);
    }
    const all = readdirSync(running).filter((name) => name.endsWith('.ndjson'));
    const text = all.map((name) => readFileSync(join(running, name), 'utf8')).join('');
    expect(text).not.toContain(given.secret);
    expect(text).not.toMatch(/"(secret|activation_hash|idempotency_key)"/);
  });
});

describe('admin export', () => {
  it('writes each column of a table, or leaves it out on purpose', () => {
    for (const name of exportNames) {
      const { table, columns } = exportTables[name];
      const entity = entities.find(({ meta }) => meta.tableName === table);
      const names = Object.keys(entity?.meta.properties ?? {}).map(snakeCase);

      expect([table, `${columns.join(' ')} ${omitted[name]}`.trim().split(/\s+/).toSorted()]).toEqual([
        table,
        names.toSorted(),
      ]);
    }
  });

  it('writes no column that holds a secret, sealed or not', () => {
    for (const name of exportNames) {
      const { table, columns } = exportTables[name];
      const entity = entities.find(({ meta }) => meta.tableName === table);
      const secrets = entity === undefined ? [] : sealedColumnsOf(entity);

      expect([table, columns.filter((column) => secrets.includes(column))]).toEqual([table, []]);
    }
    const holding = entities.filter((entity) => sealedColumnsOf(entity).length > 0);
    expect(sealedTables.toSorted()).toEqual(holding.map(({ meta }) => meta.tableName).toSorted());
  });
});

/** Secrets, and what the service counts, schedules and compares by. */
const omitted: Record<ExportName, string> = {
  forms: `project_id draft_secret activation_hash activation_expires_at created_from deleted_at owner_epoch ignored_names
    question_due_at`,
  versions: '',
  submissions: 'project_id idempotency_key respondent_key request_fingerprint',
  sessions:
    'project_id expiry_announced_at idempotency_key request_key request_fingerprint keyless_bytes callback_secret',
  webhooks: `project_id secret next_secret next_secret_at previous_secret previous_secret_until keyless failing_since
    failures_before_success deleted_at failures_in_row open_until headers signing_key announced_failing announced_by`,
  deliveries: 'project_id attempt_id cause',
  waiting_deliveries: 'project_id share step first_lease_until leased_until queued_at postponed cause',
  attempts: '',
  uploads: 'project_id keyless',
};

async function givenThings({ PORT }: Record<string, string>, key: string) {
  const post = async (path: string, body: unknown, type = 'application/json') => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': type };
    const url = `http://127.0.0.1:${PORT}${path}`;
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const reply = await fetch(url, { method: 'POST', headers, body: text });
    if (!reply.ok) throw new Error(await reply.text());
    return reply.json() as Promise<Record<string, Record<string, string>>>;
  };
  const fields = [
    { id: 'text', type: 'text' },
    { id: 'cv', type: 'file' },
  ];
  const definition = { name: 'Jobs', slug: 'jobs', fields, delivery: { type: 'email' } };
  const { form } = await post('/api/forms/create', definition);
  const formId = form?.id ?? '';
  await post(form?.activate_url ?? '', { email: 'owner@example.com' });
  const path = `/api/forms/${formId}/uploads?field=cv&filename=cv.txt`;
  const { upload } = await post(path, 'my life', 'application/octet-stream');
  const cv = { upload_id: upload?.upload_id };
  await post(`/api/forms/${formId}/submissions`, { answers: { text: 'One\u2028two', cv } });
  await post(`/api/forms/${formId}/submissions`, { answers: { text: 'three' } });
  const { session } = await post(`/v1/forms/${formId}/sessions`, {});
  const secret = 'a-secret-of-a-webhook';
  await post('/v1/webhooks', { url: 'https://one.example.com/', events: ['submission.created'], secret });
  return { formId, uploadId: upload?.upload_id ?? '', sessionId: session?.id ?? '', secret };
}

function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
