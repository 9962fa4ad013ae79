import type { Row } from '../support/bench.ts';
import { arrive } from '../support/load.ts';
import { numberOn, queryOn } from '../support/postgres.ts';
import { sampled } from '../support/rounds.ts';
import { acceptingService, submissionsTo } from './accept.ts';

export const overload: Row = {
  name: 'overload',
  what: 'three times the submissions that a slow database can store, for the time of all rounds (30 s)',
  async run(bench, report) {
    const databaseUrl = await bench.databases.create();
    const { service, formId } = await acceptingService(bench, {
      DATABASE_URL: databaseUrl,
      MAX_CONNECTIONS_PER_CLIENT: String(2 * CONNECTIONS),
      MAX_CONNECTIONS: String(2 * CONNECTIONS),
    });
    const call = submissionsTo(formId);
    await bench.hammered(service, call)({ warmingUp: true });
    const stored = () => numberOn(databaseUrl, 'select count(*) from submissions');
    const storedBefore = await stored();
    await queryOn(databaseUrl, SLOW);
    await queryOn(databaseUrl, ON_EACH_INSERT);
    const before = service.usage().residentMib;
    let most = before;
    const watch = setInterval(() => {
      most = Math.max(most, service.usage().residentMib);
    }, 100);
    const load = await sampled(service, () =>
      arrive({
        port: service.port,
        perSecond: 3 * CAPACITY,
        seconds: bench.seconds({ warmingUp: false }) * bench.rounds,
        connections: CONNECTIONS,
        request: call.request,
      }),
    );
    clearInterval(watch);

    const { 201: accepted, 503: refused } = load.statuses;
    const answered = (accepted?.count ?? 0) + (refused?.count ?? 0);
    report.sample('service', { ...load, errors: load.units + load.errors - answered });
    report.fact(
      'accepted',
      `${accepted?.count} of ${answered}, the slowest after ${accepted?.maxMs.toFixed(0)} ms`,
    );
    report.atLeast('refused with 503', refused?.count ?? 0, 1);
    report.atMost('p99 of a refusal', refused?.p99Ms ?? 0, 100, 'ms');
    report.atMost('growth of memory', most - before, 256, 'MiB');
    const lost = (accepted?.count ?? 0) - ((await stored()) - storedBefore);
    report.atMost('acknowledged but not stored', Math.max(0, lost), 0);
  },
};

/** Groups of at most 500 rows, one after the other, half a second each: submissions a second. */
const CAPACITY = 1_000;

/** More than the service lets wait: each waiting submission holds one. */
const CONNECTIONS = 8_000;

const SLOW = `create function slow() returns trigger language plpgsql as
  $$ begin perform pg_sleep(0.5); return null; end $$`;

const ON_EACH_INSERT = 'create trigger slow after insert on submissions execute function slow()';
