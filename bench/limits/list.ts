import { Pool } from 'pg';
import { inTurn } from '../support/connection.ts';
import { startMeter } from '../support/load.ts';
import { serve } from '../support/serve.ts';

/** The least that a page of submissions can cost: its SELECT through `pg`, without HTTP. */
serve(async ({ databaseUrl }: { databaseUrl: string }) => {
  const pool = new Pool({ connectionString: databaseUrl, max: POOL_SIZE });
  return { ready: {}, answer: (question: Select) => select(pool, question) };
});

/** As many as the service takes. */
const POOL_SIZE = 10;

async function select(pool: Pool, { name, sql, params, connections, seconds }: Select) {
  const meter = startMeter();
  const values = inTurn(params);
  const end = performance.now() + seconds * 1000;
  const ask = async () => {
    const { rowCount } = await pool.query({ name, text: sql, values: values() });
    return { status: rowCount === 0 ? 'nothing' : 'rows' };
  };
  const run = async () => {
    while (performance.now() < end) await meter.time(ask, 'rows');
  };
  await Promise.all(Array.from({ length: connections }, run));
  return meter.stop();
}

/** `name` names the prepared statement; its parameters are taken in turn. */
type Select = {
  name: string;
  sql: string;
  params: unknown[][];
  connections: number;
  seconds: number;
};
