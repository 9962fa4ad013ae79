import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'pg';
import { runOn } from '../../test/support/postgres.ts';
import type { Bench, Row } from '../support/bench.ts';
import { countReceived, startDelivering } from '../support/delivering.ts';
import { seedDeliveries } from '../support/seed-deliveries.ts';

/** How long the transaction stays open: an operator's forgotten session, or a slow report. */
const HELD_MS = 90_000;

/** The end of that time, in which the rate is taken. */
const WINDOW_MS = 15_000;

/** More than is delivered in all that time. */
const WAITING = 600_000;

/** Time for them to be stored before they become due. */
const SEEDING_MS = 60_000;

export const snapshot: Row = {
  name: 'snapshot',
  what: 'delivering to 10 receivers for 90 s while somebody else holds a snapshot, beside the same without',
  async run(bench, report) {
    const free = await rateAtEnd(bench, false);
    const held = await rateAtEnd(bench, true);
    report.fact('deliveries a second at the end of 90 s', Math.round(free).toLocaleString('en'));
    report.fact('while a snapshot is held', Math.round(held).toLocaleString('en'));
    report.atLeast('rate to the rate without', held / free, 0.8);
  },
};

/** Deliveries a second at the end of 90 s, with or without a snapshot from their beginning. */
async function rateAtEnd(bench: Bench, held: boolean): Promise<number> {
  const { databaseUrl, receivers, service, seed } = await startDelivering(bench, 10, 64);
  const dueAt = new Date(Date.now() + SEEDING_MS);
  await seedDeliveries(databaseUrl, { ...seed, count: bench.scaled(WAITING), dueAt });
  await sleep(dueAt.getTime() - Date.now());
  const somebody = new Client({ connectionString: databaseUrl });
  await somebody.connect();
  if (held) await somebody.query('begin isolation level repeatable read');
  await somebody.query('select count(*) from delivery_queue');
  await runOn(databaseUrl, 'notify delivery');

  const countFor = (ms: number) => {
    const until = performance.now() + ms;
    return countReceived(receivers, () => performance.now() >= until);
  };
  await countFor(HELD_MS - WINDOW_MS);
  const count = await countFor(WINDOW_MS);
  await somebody.end();
  await service[Symbol.asyncDispose]();
  return (count / WINDOW_MS) * 1000;
}
