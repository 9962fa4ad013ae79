import { setTimeout as sleep } from 'node:timers/promises';
import { runOn } from '../../test/support/postgres.ts';
import type { Bench, Row } from '../support/bench.ts';
import { countReceived, startDelivering } from '../support/delivering.ts';
import type { Load } from '../support/load.ts';
import type { Report } from '../support/report.ts';
import { sampled, takeTurns } from '../support/rounds.ts';
import { seedDeliveries, settledDeliveries } from '../support/seed-deliveries.ts';

export const deliver: Row = {
  name: 'deliver',
  what: '20,000 waiting deliveries to 1, 10 and 1,000 receivers, beside bare undici POSTs with the same signatures',
  async run(bench, report) {
    for (const receivers of [1, 10, 1_000]) await deliverTo(bench, report, receivers);
  },
};

/** In flight on both sides: the service's default. */
const CONNECTIONS = 64;

/** Time for the seeding transaction to commit before its deliveries become due. */
const SEEDING_MS = 5_000;

async function deliverTo(bench: Bench, report: Report, count: number): Promise<void> {
  const { databaseUrl, receivers, service, seed } = await startDelivering(bench, count, CONNECTIONS);
  const { urls } = receivers.ready;
  const limit = await bench.program('limits/deliver.ts');
  const countOf = (warmingUp: boolean) => bench.scaled(warmingUp ? 5_000 : 20_000);

  const turns = await takeTurns(bench.rounds, {
    service: async ({ warmingUp }) => {
      const total = countOf(warmingUp);
      const dueAt = new Date(Date.now() + SEEDING_MS);
      await seedDeliveries(databaseUrl, { ...seed, count: total, dueAt });
      await sleep(dueAt.getTime() - Date.now());
      // As the process that accepted them would; the loop looks by itself every second only.
      await runOn(databaseUrl, 'notify delivery');
      return sampled(service, async () => {
        await countReceived(receivers, (seen) => seen >= total);
        return settledDeliveries(databaseUrl, { dueAt, count: total });
      });
    },
    limit: ({ warmingUp }) =>
      sampled(limit, () =>
        limit.ask<Load>({ urls, body: seed.body, count: countOf(warmingUp), connections: CONNECTIONS }),
      ),
  });

  const name = `${count} receiver${count === 1 ? '' : 's'}`;
  report.sample(`service, ${name}`, turns.typical('service'));
  report.sample(`limit, ${name}`, turns.typical('limit'));
  report.atLeast(`${name}, rate to the limit`, turns.ratio('service', 'limit'), 0.5);
  const memory = turns.samples('service').map(({ residentMib }) => residentMib);
  report.atMost(
    `${name}, memory after the last round to the first`,
    (memory.at(-1) ?? 0) / (memory[0] ?? 1),
    1.1,
  );
}
