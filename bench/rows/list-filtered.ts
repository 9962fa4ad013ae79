import type { Bench, Row } from '../support/bench.ts';
import { inTurn, requestBytes } from '../support/connection.ts';
import { contactAnswers } from '../support/form.ts';
import { queryOn } from '../support/postgres.ts';
import { type Contestant, takeTurns } from '../support/rounds.ts';
import { seededId } from '../support/seed.ts';
import { apiKey } from '../support/service.ts';
import { serviceWith } from './accept-full.ts';

export const listFiltered: Row = {
  name: 'list-filtered',
  what: 'a page of submissions by an answer that 1 % have, and with the total, of 2,000,000, beside a page by id',
  async run(bench, report) {
    const count = bench.scaled(2_000_000);
    const { service, databaseUrl, formId } = await serviceWith(bench, count);
    await markOneInHundred(databaseUrl, formId);
    const read = (query: string) => contestant(bench, service, `/v1/forms/${formId}/submissions?${query}`);
    const turns = await takeTurns(bench.rounds, {
      'by id': read(`cursor=${seededId(Math.ceil(count / 2))}`),
      'with the total': read(`cursor=${seededId(Math.ceil(count / 2))}&total=true`),
      filtered: read('filter[topic]=press'),
      deep: read(`offset=${Math.ceil(count / 2)}`),
    });
    for (const name of ['by id', 'with the total', 'filtered', 'deep'] as const)
      report.sample(name, turns.typical(name));
    // One connection: the rates are what one reader waits for.
    report.atMost('with the total, time to that by id', turns.ratio('by id', 'with the total'), 3);
    report.atMost('filtered, time to that by id', turns.ratio('by id', 'filtered'), 3);
  },
};

/** Of each hundred, which follow each other in time, one has another topic. */
async function markOneInHundred(databaseUrl: string, formId: string): Promise<void> {
  await queryOn(
    databaseUrl,
    `update submissions set answers = $2::json
     where form_id = $1 and ('x' || right(id, 8))::bit(32)::int % 100 = 0`,
    [formId, JSON.stringify({ ...contactAnswers, topic: 'press' })],
  );
  await queryOn(databaseUrl, 'vacuum (analyze) submissions', []);
}

function contestant(
  bench: Bench,
  service: Awaited<ReturnType<typeof serviceWith>>['service'],
  path: string,
): Contestant {
  const headers = { authorization: `Bearer ${apiKey}` };
  const request = inTurn([requestBytes({ method: 'GET', path, headers })]);
  return bench.hammered(service, { request, expect: 200, connections: 1 });
}
