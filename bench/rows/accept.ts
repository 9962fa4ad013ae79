import type { Bench, Call, Row, Target } from '../support/bench.ts';
import { contactForm, submissionRequest } from '../support/form.ts';
import { numberOn } from '../support/postgres.ts';
import type { Report } from '../support/report.ts';
import { type Contestant, takeTurns } from '../support/rounds.ts';

export const accept: Row = {
  name: 'accept',
  what: 'submissions by REST on PostgreSQL with the delivery loop turned off, beside bare node:http with the same grouped insert',
  async run(bench, report) {
    const databaseUrl = await bench.databases.create();
    const { service, formId } = await acceptingService(bench, { DATABASE_URL: databaseUrl });
    const turns = await takeTurns(bench.rounds, {
      service: bench.hammered(service, submissionsTo(formId)),
      limit: await acceptLimit(bench),
    });

    report.sample('service', turns.typical('service'));
    report.sample('limit', turns.typical('limit'));
    report.atLeast('rate to the limit', turns.ratio('service', 'limit'), 0.8);
    report.atMost(
      'p99 to the limit',
      turns.ratio('service', 'limit', ({ p99Ms }) => p99Ms),
      3,
    );
    await reportLost(report, databaseUrl, turns.answered('service'));
  },
};

/**
 * A service with a published contact form, whose webhook goes to a receiver. It only accepts, since the
 * limit does no more.
 */
export async function acceptingService(bench: Bench, env: NodeJS.ProcessEnv) {
  const receivers = await bench.program<{ urls: string[] }>('support/receivers.ts', { count: 1 });
  const service = await bench.service({ DELIVERY_WORKERS: '0', ...env });
  const published = await service.publish(contactForm(receivers.ready.urls[0] ?? ''));
  return { service, ...published };
}

/** The limit of accepting on PostgreSQL, or on PGlite in `dataDir`, with a database of its own. */
export async function acceptLimit(bench: Bench, dataDir?: string): Promise<Contestant> {
  const place = dataDir === undefined ? { databaseUrl: await bench.databases.create() } : { dataDir };
  const limit = await bench.program<{ port: number }>('limits/accept.ts', place);
  const target: Target = { port: limit.ready.port, usage: limit.usage };
  const request = submissionRequest('/');
  return bench.hammered(target, { request: () => request, expect: 201 });
}

/** The public submissions of a form, always the same answers. */
export function submissionsTo(formId: string): Call {
  const request = submissionRequest(`/api/forms/${formId}/submissions`);
  return { request: () => request, expect: 201 };
}

/** Says how many of the acknowledged submissions are not in the database. */
export async function reportLost(report: Report, databaseUrl: string, acknowledged: number): Promise<void> {
  const stored = await numberOn(databaseUrl, 'select count(*) from submissions');
  report.atMost('acknowledged but not stored', Math.max(0, acknowledged - stored), 0);
}
