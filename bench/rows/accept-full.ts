import type { Bench, Row } from '../support/bench.ts';
import { contactForm } from '../support/form.ts';
import { takeTurns } from '../support/rounds.ts';
import { seedSubmissions } from '../support/seed.ts';
import { submissionsTo } from './accept.ts';

export const acceptFull: Row = {
  name: 'accept-full',
  what: 'accept with 2,000,000 submissions stored, beside accept with none',
  async run(bench, report) {
    const full = await acceptingWith(bench, bench.scaled(2_000_000));
    const empty = await acceptingWith(bench, 0);
    const turns = await takeTurns(bench.rounds, { full: full.contestant, empty: empty.contestant });

    report.sample('service, full', turns.typical('full'));
    report.sample('service, empty', turns.typical('empty'));
    report.atLeast('rate to that on empty', turns.ratio('full', 'empty'), 0.9);
  },
};

/** A service whose form has so many submissions already. Each count is stored once in a run. */
export async function serviceWith(bench: Bench, count: number, env: NodeJS.ProcessEnv = {}) {
  const { url, content } = await bench.databases.createFrom(`${count} submissions`, async (databaseUrl) => {
    await using service = await bench.service({ DATABASE_URL: databaseUrl, DELIVERY_WORKERS: '0' });
    const form = await service.publish(contactForm('http://127.0.0.1:9/'));
    if (count > 0) await seedSubmissions(databaseUrl, { ...form, count });
    return form;
  });
  const service = await bench.service({ DATABASE_URL: url, DELIVERY_WORKERS: '0', ...env });
  return { service, databaseUrl: url, ...content };
}

async function acceptingWith(bench: Bench, count: number) {
  const { service, formId } = await serviceWith(bench, count);
  return { contestant: bench.hammered(service, submissionsTo(formId)) };
}
