import { get, type IncomingMessage } from 'node:http';
import type { Row } from '../support/bench.ts';
import { requestBytes } from '../support/connection.ts';
import { arrive, type Load } from '../support/load.ts';
import type { Report } from '../support/report.ts';
import { median, type Sample, sampled, takeTurns } from '../support/rounds.ts';
import { seededId } from '../support/seed.ts';
import { apiKey, type Service } from '../support/service.ts';
import { serviceWith } from './accept-full.ts';

export const exporting: Row = {
  name: 'export',
  what: 'CSV and NDJSON of 1,000,000 submissions, beside COPY (SELECT …) TO STDOUT through pg',
  async run(bench, report) {
    const count = bench.scaled(1_000_000);
    const { service, databaseUrl, formId } = await serviceWith(bench, count);
    const limit = await bench.program('limits/export.ts', { databaseUrl });
    for (const format of ['csv', 'ndjson'] as const) {
      const exports: Exported[] = [];
      const turns = await takeTurns(bench.rounds, {
        service: async () => {
          const exported = await exportOnce(service, { formId, format, count });
          exports.push(exported);
          return exported.sample;
        },
        limit: () =>
          sampled(limit, async () => {
            const start = performance.now();
            await limit.ask<{ bytes: number }>({ sql: copyOf(format, formId) });
            const tookMs = performance.now() - start;
            return oneCall(count, tookMs);
          }),
      });
      report.sample(`service, ${format}`, turns.typical('service'));
      report.sample(`limit, ${format}`, turns.typical('limit'));
      report.atLeast(`${format}, rate to the limit`, turns.ratio('service', 'limit'), 0.25);
      reportManners(report, format, exports.slice(1));
    }
  },
};

/** What the export did to everybody else. */
function reportManners(report: Report, format: string, exports: Exported[]): void {
  const of = (figure: (exported: Exported) => number) => median(exports.map(figure));
  report.atMost(
    `${format}, growth of memory`,
    of(({ grownMib }) => grownMib),
    32,
    'MiB',
  );
  report.atMost(
    `${format}, first byte`,
    of(({ firstByteMs }) => firstByteMs),
    100,
    'ms',
  );
  report.atMost(
    `${format}, p99 of other requests meanwhile`,
    of(({ othersP99Ms }) => othersP99Ms),
    50,
    'ms',
  );
}

/** Exports while 50 requests a second read a submission, and while the memory is watched. */
async function exportOnce(service: Service, { formId, format, count }: Wanted): Promise<Exported> {
  const headers = { authorization: `Bearer ${apiKey}` };
  const other = requestBytes({ method: 'GET', path: `/v1/submissions/${seededId(1)}`, headers });
  const before = service.usage().residentMib;
  let most = before;
  const watch = setInterval(() => {
    most = Math.max(most, service.usage().residentMib);
  }, 50);
  let over = false;
  const others = arrive({
    port: service.port,
    perSecond: 50,
    seconds: 600,
    expect: 200,
    request: () => other,
    stopped: () => over,
  });
  let firstByteMs = 0;
  const sample = await sampled(service, async () => {
    const start = performance.now();
    const url = `http://127.0.0.1:${service.port}/v1/forms/${formId}/submissions/export?format=${format}`;
    const response = await getting(url, headers);
    let lines = 0;
    for await (const chunk of response) {
      if (firstByteMs === 0) firstByteMs = performance.now() - start;
      lines += countLines(chunk);
    }
    const rows = format === 'csv' ? lines - 1 : lines;
    return { ...oneCall(rows, performance.now() - start), errors: rows === count ? 0 : 1 };
  });
  over = true;
  clearInterval(watch);
  const { p99Ms, errors } = await others;
  return {
    sample: { ...sample, errors: sample.errors + errors },
    firstByteMs,
    grownMib: most - before,
    othersP99Ms: p99Ms,
  };
}

function getting(url: string, headers: Record<string, string>): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => get(url, { headers }, resolve).on('error', reject));
}

function countLines(chunk: Buffer): number {
  let lines = 0;
  for (let at = chunk.indexOf(LINE_FEED); at >= 0; at = chunk.indexOf(LINE_FEED, at + 1)) lines += 1;
  return lines;
}

const LINE_FEED = 10;

function oneCall(units: number, tookMs: number): Load {
  const statuses = {};
  return { units, errors: 0, seconds: tookMs / 1000, p50Ms: tookMs, p99Ms: tookMs, maxMs: tookMs, statuses };
}

/** The same columns or members that the service writes. */
function copyOf(format: 'csv' | 'ndjson', formId: string): string {
  const from = `from submissions where form_id = '${formId}' and status = 'accepted' order by id`;
  const fields = ['name', 'email', 'phone', 'company', 'seats', 'topic', 'consent', 'message'];
  const cells = fields.map((id) => `answers->>'${id}'`).join(', ');
  if (format === 'csv') {
    return `copy (select id, created_at, status, source, session_id, ${cells} ${from}) to stdout (format csv)`;
  }
  const members = `'id', id, 'form_id', form_id, 'form_version_id', version_id, 'session_id', session_id,
    'source', source, 'answers', answers, 'status', status, 'created_at', created_at, 'metadata', metadata`;
  return `copy (select json_build_object(${members}) ${from}) to stdout`;
}

type Wanted = { formId: string; format: 'csv' | 'ndjson'; count: number };
type Exported = { sample: Sample; firstByteMs: number; grownMib: number; othersP99Ms: number };
