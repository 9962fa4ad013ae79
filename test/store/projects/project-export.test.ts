import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { newId } from '../../../src/domain/ids.ts';
import type { Database } from '../../../src/store/database/database.ts';
import { type ExportName, exportNames, exportRows } from '../../../src/store/projects/project-export.ts';
import { engines, openTestDatabase } from '../../support/database.ts';
import { givenForm } from '../../support/delivery.ts';

describe.each(engines)('exportRows on %s', (engine) => {
  it('takes the calls that its own rows need, however many others have', async () => {
    await using database = await openTestDatabase(engine);
    const projectId = newId('prj', Date.now());
    const forms = [
      await givenForm(database, { projectId }),
      await givenForm(database, { projectId }),
      await givenForm(database, { projectId, deletedAt: new Date() }),
    ];
    const others = await givenForm(database);
    await givenRows(database, forms.slice(0, 2), 300);
    await givenRows(database, [forms[2] ?? others, others], 3_000);

    for (const [name, expected] of [
      ['submissions', 600],
      ['sessions', 600],
      ['deliveries', 600],
      ['attempts', 600],
      ['uploads', 600],
      ['forms', 2],
      ['versions', 2],
    ] as const) {
      const { ids, calls } = await exported(database, name, projectId);
      expect([name, new Set(ids).size, ids.length]).toEqual([name, expected, expected]);
      expect(calls).toBeLessThanOrEqual(2);
    }
  });

  it('finds rows that belong to no form, and nothing of nobody', async () => {
    await using database = await openTestDatabase(engine);
    const projectId = newId('prj', Date.now());
    for (const [id, project] of [
      ['dlv_1', projectId],
      ['dlv_2', 'prj_other'],
    ]) {
      await database.execute(
        `insert into deliveries (id, project_id, form_id, channel, kind, receiver, status, attempt_count, created_at)
         values ($1, $2, '', 'webhook', 'webhook.test', 'wh_1', 'failed', 1, now())`,
        [id, project],
      );
    }

    for (const name of exportNames) {
      const { ids } = await exported(database, name, projectId);
      expect([name, ids]).toEqual([name, name === 'deliveries' ? ['dlv_1'] : []]);
    }
  });
});

async function exported(database: Database, name: ExportName, projectId: string) {
  const ids: string[] = [];
  let calls = 0;
  for (let after: string | null = ''; after !== null; calls += 1) {
    const page = await exportRows(database, name, { projectId, after });
    ids.push(...page.lines.map((line) => z.object({ id: z.string() }).parse(JSON.parse(line)).id));
    after = page.next;
  }
  return { ids, calls };
}

/** So many submissions for each form, each with a session, a file, and a delivery that was attempted. */
async function givenRows(
  database: Database,
  forms: { id: string; projectId: string; versionId: string }[],
  count: number,
): Promise<void> {
  for (const { id, projectId, versionId } of forms) {
    const rows = `select '${id}-' || n as id from generate_series(1, ${count}) n`;
    for (const insert of [
      `insert into submissions (id, project_id, form_id, version_id, source, answers, metadata, status, created_at)
       select id, $1, $2, $3, 'api', '{}', '{}', case when id like '%7' then 'spam' else 'accepted' end, now()`,
      `insert into sessions (id, project_id, form_id, version_id, prefill, metadata, created_at, expires_at)
       select id, $1, $2, $3, '{}', '{}', now(), now()`,
      `insert into uploads (id, project_id, form_id, field_id, filename, content_type, size, sha256, created_at, submission_id)
       select id, $1, $2, $3, 'a', 'b', 1, 'c', now(), id`,
      `insert into deliveries (id, project_id, form_id, channel, kind, receiver, status, attempt_count, created_at)
       select id, $1, $2, 'webhook', $3, 'wh_1', 'failed', 1, now()`,
      `insert into attempts (id, delivery_id, number, status, duration_ms, started_at)
       select id, id, 1, 'failed', 1, now()`,
    ]) {
      const params = insert.includes('$1') ? [projectId, id, versionId] : [];
      await database.execute(`${insert} from (${rows}) r`, params);
    }
  }
}
