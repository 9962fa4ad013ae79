import type { Bench, Row } from '../support/bench.ts';
import { inTurn, requestBytes } from '../support/connection.ts';
import type { Load } from '../support/load.ts';
import { queryOn } from '../support/postgres.ts';
import { type Contestant, sampled, takeTurns } from '../support/rounds.ts';
import { seededId } from '../support/seed.ts';
import { apiKey } from '../support/service.ts';
import { serviceWith } from './accept-full.ts';

export const list: Row = {
  name: 'list',
  what: 'reading submissions with 1,000 and with 2,000,000 stored, beside the same SELECT through pg',
  async run(bench, report) {
    const few = await readers(bench, 1_000);
    const many = await readers(bench, bench.scaled(2_000_000));
    for (const read of reads) {
      const turns = await takeTurns(bench.rounds, {
        few: few.service(read),
        many: many.service(read),
        limit: many.limit(read),
      });
      report.sample(`service, ${read.name}, of 1,000`, turns.typical('few'));
      report.sample(`service, ${read.name}, of 2,000,000`, turns.typical('many'));
      report.sample(`limit, ${read.name}, of 2,000,000`, turns.typical('limit'));
      report.atMost(`${read.name}, growth of the time`, turns.ratio('few', 'many'), 1.3);
      report.atLeast(`${read.name}, rate to the limit`, turns.ratio('many', 'limit'), 0.5);
    }
  },
};

const columns = `id, project_id, form_id, version_id, session_id, source, answers, metadata, status,
  idempotency_key, request_fingerprint, created_at, provenance`;

/** A page of 20, and one row more to know whether there is another. */
const page = `order by id desc limit 21`;

const reads: Read[] = [
  {
    name: 'newest page',
    paths: ({ formId }) => [`/v1/forms/${formId}/submissions`],
    sql: `select ${columns} from submissions where form_id = $1 and status = 'accepted' ${page}`,
    params: ({ formId }) => [[formId]],
  },
  {
    name: 'page at depth 90 %',
    paths: ({ formId, count }) =>
      atDepth(count).map((cursor) => `/v1/forms/${formId}/submissions?cursor=${cursor}`),
    sql: `select ${columns} from submissions where form_id = $1 and status = 'accepted' and id < $2 ${page}`,
    params: ({ formId, count }) => atDepth(count).map((cursor) => [formId, cursor]),
  },
  {
    name: 'one by id',
    paths: ({ count }) => atDepth(count).map((id) => `/v1/submissions/${id}`),
    sql: `select ${columns} from submissions where id = $1 and project_id = $2`,
    params: ({ count, projectId }) => atDepth(count).map((id) => [id, projectId]),
  },
];

/** Neighbours, more than are asked for at once: readers seldom want the same at the same instant. */
function atDepth(count: number): string[] {
  return Array.from({ length: 256 }, (_, index) => seededId(Math.ceil(count / 10) + index));
}

/** A database with so many submissions, the service on it, and the limit beside it. */
async function readers(bench: Bench, count: number) {
  const { service, databaseUrl, formId } = await serviceWith(bench, count);
  const limit = await bench.program('limits/list.ts', { databaseUrl });
  const [form] = await queryOn(databaseUrl, 'select project_id from forms where id = $1', [formId]);
  const place: Place = { formId, projectId: String(form?.project_id), count };
  return {
    service({ paths }: Read): Contestant {
      const headers = { authorization: `Bearer ${apiKey}` };
      const requests = paths(place).map((path) => requestBytes({ method: 'GET', path, headers }));
      return bench.hammered(service, { request: inTurn(requests), expect: 200 });
    },
    limit({ name, sql, params }: Read): Contestant {
      return (turn) =>
        sampled(limit, () =>
          limit.ask<Load>({
            name,
            sql,
            params: params(place),
            connections: 64,
            seconds: bench.seconds(turn),
          }),
        );
    },
  };
}

type Place = { formId: string; projectId: string; count: number };
type Read = {
  name: string;
  /** What is read in turn, by URL and by the parameters of the SELECT. */
  paths: (place: Place) => string[];
  sql: string;
  params: (place: Place) => string[][];
};
