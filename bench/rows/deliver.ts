import { setTimeout as sleep } from 'node:timers/promises';
import { runOn } from '../../test/support/postgres.ts';
import type { Bench, Row } from '../support/bench.ts';
import { contactAnswers, contactForm, webhookSecret } from '../support/form.ts';
import type { Load } from '../support/load.ts';
import type { Program } from '../support/process.ts';
import type { Report } from '../support/report.ts';
import { sampled, takeTurns } from '../support/rounds.ts';
import { seedDeliveries, settledDeliveries } from '../support/seed-deliveries.ts';
import { objectAt } from '../support/service.ts';

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
  const databaseUrl = await bench.databases.create();
  const receivers = await bench.program<{ urls: string[] }>('support/receivers.ts', { count });
  const { urls } = receivers.ready;
  const service = await bench.service({ DATABASE_URL: databaseUrl, DELIVERY_WORKERS: String(CONNECTIONS) });
  const { formId } = await service.publish(contactForm('http://127.0.0.1:9/'));
  const webhooks: { id: string; url: string }[] = [];
  for (const url of urls) {
    const webhook = { url, events: ['session.expired'], secret: webhookSecret };
    const created = await service.call('POST', '/v1/webhooks', webhook);
    webhooks.push({ id: String(objectAt(created, 'webhook').id), url });
  }
  const limit = await bench.program('limits/deliver.ts');
  const body = JSON.stringify({ id: 'evt_', event: 'submission.created', data: { answers: contactAnswers } });
  const countOf = (warmingUp: boolean) => bench.scaled(warmingUp ? 5_000 : 20_000);

  const turns = await takeTurns(bench.rounds, {
    service: async ({ warmingUp }) => {
      const total = countOf(warmingUp);
      const dueAt = new Date(Date.now() + SEEDING_MS);
      await seedDeliveries(databaseUrl, { formId, body, count: total, webhooks, dueAt });
      await sleep(dueAt.getTime() - Date.now());
      // As the process that accepted them would; the loop looks by itself every second only.
      await runOn(databaseUrl, 'notify delivery');
      return sampled(service, async () => {
        await untilReceived(receivers, total);
        return settledDeliveries(databaseUrl, { dueAt, count: total });
      });
    },
    limit: ({ warmingUp }) =>
      sampled(limit, () =>
        limit.ask<Load>({ urls, body, count: countOf(warmingUp), connections: CONNECTIONS }),
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

/** Waits until so many requests have come to the receivers. */
async function untilReceived(receivers: Program<unknown>, count: number): Promise<void> {
  let seen = 0;
  while (seen < count) {
    await sleep(20);
    const { received } = await receivers.ask<{ received: number }>({});
    seen += received;
  }
}
