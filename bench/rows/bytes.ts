import type { Row } from '../support/bench.ts';
import { countReceived } from '../support/delivering.ts';
import { contactForm } from '../support/form.ts';
import { hammer } from '../support/load.ts';
import { numberOn, queryOn } from '../support/postgres.ts';
import { submissionsTo } from './accept.ts';

export const bytes: Row = {
  name: 'bytes',
  what: 'bytes on disk and in the write-ahead log of a submission of 400 bytes with one webhook, delivered at the first attempt',
  async run(bench, report) {
    const databaseUrl = await bench.databases.create();
    const receivers = await bench.program<{ urls: string[] }>('support/receivers.ts', { count: 1 });
    const service = await bench.service({ DATABASE_URL: databaseUrl });
    const { formId } = await service.publish(contactForm(receivers.ready.urls[0] ?? ''));
    const store = async (count: number) => {
      await hammer({ ...submissionsTo(formId), port: service.port, connections: 64, count });
      await countReceived(receivers, (seen) => seen >= count);
      await untilSettled(databaseUrl);
    };
    // Tables and their indexes have a page or two before anything is in them.
    await store(1_000);
    const count = bench.scaled(100_000);
    await queryOn(databaseUrl, 'checkpoint');
    const before = await used(databaseUrl);
    await store(count);
    const after = await used(databaseUrl);

    report.fact('PostgreSQL', after.version);
    report.fact('write-ahead log', perSubmission(after.wal - before.wal, count));
    report.fact('of it pages whole', perSubmission(after.wholePages - before.wholePages, count));
    for (const table of tables) {
      const [was, is] = [before.tables.get(table) ?? none, after.tables.get(table) ?? none];
      const rows = (is.rows - was.rows) / count;
      const heap = perSubmission(is.heap - was.heap, count);
      const indexes = perSubmission(is.indexes - was.indexes, count);
      report.fact(table, `${rows.toFixed(2)} rows, ${heap} of rows, ${indexes} of indexes`);
    }
  },
};

/** What grows with submissions. The queue does not: it holds a row until its delivery is settled. */
const tables = ['submissions', 'events', 'deliveries', 'attempts'];

const none = { rows: 0, heap: 0, indexes: 0 };

async function untilSettled(databaseUrl: string): Promise<void> {
  while ((await numberOn(databaseUrl, 'select count(*) from delivery_queue')) > 0) {
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

async function used(databaseUrl: string): Promise<Used> {
  // Backends report to pg_stat_wal when they are idle for a moment.
  await queryOn(databaseUrl, 'select pg_stat_force_next_flush()');
  const [wal = {}] = await queryOn(
    databaseUrl,
    `select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 as wal, version() as version,
       (select wal_fpi * 8192 from pg_stat_wal)::float8 as whole_pages`,
  );
  const sizes = new Map<string, Size>();
  for (const table of tables) {
    const [row = {}] = await queryOn(
      databaseUrl,
      `select (select count(*) from ${table})::float8 as rows, pg_table_size('${table}')::float8 as heap,
         pg_indexes_size('${table}')::float8 as indexes`,
    );
    sizes.set(table, { rows: Number(row.rows), heap: Number(row.heap), indexes: Number(row.indexes) });
  }
  const version = String(wal.version).split(' ').slice(0, 2).join(' ');
  return { version, wal: Number(wal.wal), wholePages: Number(wal.whole_pages), tables: sizes };
}

function perSubmission(total: number, count: number): string {
  return `${Math.round(total / count)} bytes a submission`;
}

type Size = { rows: number; heap: number; indexes: number };
type Used = { version: string; wal: number; wholePages: number; tables: Map<string, Size> };
