import { setTimeout as sleep } from 'node:timers/promises';
import type { Row } from '../support/bench.ts';

/** Time for what a start leaves to be done. */
const SETTLE_MS = 5_000;

export const idle: Row = {
  name: 'idle',
  what: 'CPU of a service on PostgreSQL that has nothing to do',
  async run(bench, report) {
    const service = await bench.service({ DATABASE_URL: await bench.databases.create() });
    await sleep(SETTLE_MS);
    const seconds = bench.seconds({ warmingUp: false }) * bench.rounds;
    const before = service.usage().cpuMicros;
    await sleep(seconds * 1000);
    const used = (service.usage().cpuMicros - before) / 1e6;
    report.atMost('of a core', (used / seconds) * 100, 0.5, '%');
  },
};
