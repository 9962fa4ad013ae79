import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'pg';
import { runOn } from '../../test/support/postgres.ts';
import type { Row } from '../support/bench.ts';
import { countReceived, startDelivering } from '../support/delivering.ts';
import { seedDeliveries } from '../support/seed-deliveries.ts';

/** How long the transaction stays open: an operator's forgotten session, or a slow report. */
const HELD_MS = 90_000;

/** Before the transaction, and at its end. */
const WINDOW_MS = 15_000;

/** More than is delivered in all that time. */
const WAITING = 400_000;

const SEEDING_MS = 60_000;

export const snapshot: Row = {
  name: 'snapshot',
  what: 'delivering to 10 receivers while somebody else holds a snapshot for 90 s, beside delivering before',
  async run(bench, report) {
    const { databaseUrl, receivers, seed } = await startDelivering(bench, 10, 64);
    const dueAt = new Date(Date.now() + SEEDING_MS * Math.min(1, bench.scaled(100) / 100));
    await seedDeliveries(databaseUrl, { ...seed, count: bench.scaled(WAITING), dueAt });
    await sleep(dueAt.getTime() - Date.now());
    await runOn(databaseUrl, 'notify delivery');
    const rateFor = async (ms: number) => {
      const until = performance.now() + ms;
      return ((await countReceived(receivers, () => performance.now() >= until)) / ms) * 1000;
    };

    await rateFor(WINDOW_MS / 3);
    const before = await rateFor(WINDOW_MS);
    const somebody = new Client({ connectionString: databaseUrl });
    await somebody.connect();
    await somebody.query('begin isolation level repeatable read');
    await somebody.query('select count(*) from deliveries');
    await rateFor(HELD_MS - WINDOW_MS);
    const during = await rateFor(WINDOW_MS);
    await somebody.query('rollback');
    await somebody.end();

    report.fact('deliveries a second before', Math.round(before).toLocaleString('en'));
    report.fact('deliveries a second at the end of the 90 s', Math.round(during).toLocaleString('en'));
    report.atLeast('rate while held to the rate before', during / before, 0.8);
  },
};
