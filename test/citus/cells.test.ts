import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { openDatabase } from '../../src/store/database/database.ts';
import { createServerDatabase } from '../support/database.ts';
import { fillTables } from '../support/filled-tables.ts';
import { runOn } from '../support/postgres.ts';
import { until } from '../support/until.ts';
import { KEY } from '../upgrades/fixture.ts';

/*
 * Two cells of projects, each a schema with a service of its own: on the Citus at `CITUS_URL`, as docs/scaling.md sets
 * it up, or on a plain server, where the parts that need Citus are left out.
 */

describe('two cells', () => {
  it('serve every documented route, and lose nothing while one is moved to another worker', async () => {
    await using opened = new AsyncDisposableStack();
    const databaseUrl =
      process.env.CITUS_URL ?? opened.use(await createServerDatabase({ migrated: false })).databaseUrl;
    const isCitus = (await runOn(databaseUrl, "select from pg_extension where extname = 'citus'")).length > 0;
    if (!isCitus)
      console.warn(
        'No Citus at CITUS_URL: the cells are plain schemas of PostgreSQL. Not tried: distribution, move of a cell.',
      );
    const run = randomBytes(4).toString('hex');
    const schemas = [`cell_a_${run}`, `cell_b_${run}`];
    for (const schema of schemas) {
      await runOn(databaseUrl, `create schema ${schema}`);
      opened.defer(async () => void (await runOn(databaseUrl, `drop schema ${schema} cascade`)));
      await migrate(databaseUrl, schema);
      if (isCitus) await runOn(databaseUrl, `select citus_schema_distribute('${schema}')`);
    }

    const cells = [];
    for (const schema of schemas) {
      const { url } = await fillTables(opened, databaseUrl, { DATABASE_SCHEMA: schema });
      cells.push({ schema, url, formId: await givenForm(url) });
    }

    let isMoving = true;
    const accepted = cells.map(async ({ url, formId }) => {
      let count = 0;
      for (let sent = 0; sent < 200 || isMoving; sent += 1)
        count += (await submit(url, formId, sent)) ? 1 : 0;
      return count;
    });
    if (isCitus) await moveCell(databaseUrl, schemas[0] ?? '');
    isMoving = false;
    const counts = await Promise.all(accepted);

    const stored = await Promise.all(
      cells.map(({ schema, formId }) =>
        runOn(
          databaseUrl,
          `select count(*)::int as count from ${schema}.submissions where form_id = '${formId}'`,
        ),
      ),
    );
    expect(stored.map(([row]) => row?.count)).toEqual(counts);
    expect(Math.min(...counts)).toBeGreaterThanOrEqual(200);
  }, 300_000);
});

async function migrate(url: string, schema: string): Promise<void> {
  const env = { DATABASE_URL: url, DATABASE_SCHEMA: schema, SECRET_KEY: '00'.repeat(32) };
  const { databaseUrl = '' } = readConfig(env);
  await (await openDatabase({ databaseUrl, log: console })).close();
}

/** Moves a cell to a worker that it is not on, while others use it. */
async function moveCell(databaseUrl: string, schema: string): Promise<void> {
  const [to] = await runOn(
    databaseUrl,
    `select nodename, nodeport from pg_dist_node where shouldhaveshards and isactive and (nodename, nodeport) not in (
       select nodename, nodeport from citus_shards where table_name::text like '${schema}.%') limit 1`,
  );
  if (to === undefined) throw new Error('This Citus has no second worker to move a cell to.');
  await runOn(
    databaseUrl,
    `select citus_schema_move('${schema}', '${String(to.nodename)}', ${Number(to.nodeport)})`,
  );
}

async function givenForm(url: string): Promise<string> {
  const call = async (path: string, body: object) => {
    const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' };
    const response = await fetch(`${url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
    const { form } = (await response.json()) as { form: { id: string; activate_url: string } };
    return form;
  };
  const fields = [{ id: 'email', type: 'email', required: true }];
  const { id, activate_url } = await call('/api/forms/create', {
    name: 'Cell',
    slug: 'cell',
    fields,
    delivery: { type: 'email' },
  });
  await call(activate_url, { email: 'owner@example.com' });
  return id;
}

/** Sends until the service has an answer to keep, under one key, as clients that lose a connection do. */
async function submit(url: string, formId: string, n: number): Promise<boolean> {
  const headers = {
    authorization: `Bearer ${KEY}`,
    'content-type': 'application/json',
    'idempotency-key': `cell-${n}`,
  };
  const body = JSON.stringify({ answers: { email: `ada-${n}@example.com` } });
  const { status } = await until(async () => {
    const answer = await fetch(`${url}/api/forms/${formId}/submissions`, { method: 'POST', headers, body });
    await answer.arrayBuffer();
    return answer.status < 500 && answer;
  }, 60_000);
  return status === 201;
}
