import { setTimeout as sleep } from 'node:timers/promises';
import type { Row } from '../support/bench.ts';
import { hammer } from '../support/load.ts';
import { queryOn } from '../support/postgres.ts';
import { sampled } from '../support/rounds.ts';
import { acceptingService, submissionsTo } from './accept.ts';

export const memory: Row = {
  name: 'memory',
  what: 'resident memory after 1,000 and after 1,000,000 submissions accepted and delivered',
  async run(bench, report) {
    const databaseUrl = await bench.databases.create();
    const env = { DATABASE_URL: databaseUrl, DELIVERY_WORKERS: '64' };
    const { service, formId } = await acceptingService(bench, env);
    const after = async (count: number) => {
      const call = submissionsTo(formId);
      const load = () => hammer({ ...call, port: service.port, connections: 64, count });
      const sample = await sampled(service, load);
      await untilDelivered(databaseUrl);
      await sleep(SETTLE_MS);
      return { sample, residentMib: service.usage().residentMib };
    };
    const few = await after(1_000);
    const many = await after(bench.scaled(1_000_000) - 1_000);

    report.sample('service, accepting and delivering', many.sample);
    report.fact('after 1,000', `${few.residentMib.toFixed(0)} MiB`);
    report.atMost('growth from 1,000 to 1,000,000', many.residentMib / few.residentMib, 1.1);
    report.atMost('after 1,000,000', many.residentMib, 220, 'MiB');
  },
};

/** V8 gives pages back some time after the work is over. */
const SETTLE_MS = 5_000;

async function untilDelivered(url: string): Promise<void> {
  const waiting = `select exists (select from events where fanned_out_at is null)
    or exists (select from delivery_queue) as waiting`;
  for (;;) {
    const [row] = await queryOn(url, waiting);
    if (row?.waiting === false) return;
    await sleep(200);
  }
}
