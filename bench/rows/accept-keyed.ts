import type { Call, Row } from '../support/bench.ts';
import { requestBytes } from '../support/connection.ts';
import { contactAnswers, submissionRequest } from '../support/form.ts';
import { queryOn } from '../support/postgres.ts';
import { takeTurns } from '../support/rounds.ts';
import { apiKey } from '../support/service.ts';
import { acceptingService, acceptLimit, reportLost } from './accept.ts';

export const acceptKeyed: Row = {
  name: 'accept-keyed',
  what: 'accept with Idempotency-Key, and SubmitSession of fresh sessions, beside the limit of accept',
  async run(bench, report) {
    const databaseUrl = await bench.databases.create();
    const { service, formId, versionId } = await acceptingService(bench, { DATABASE_URL: databaseUrl });
    const fresh = freshSessions(databaseUrl, { formId, versionId });
    const submit = bench.hammered(service, { request: fresh.request, expect: 201 });
    const turns = await takeTurns(bench.rounds, {
      keyed: bench.hammered(service, keyedSubmissions(formId)),
      session: async (turn) => {
        await fresh.make(bench.seconds(turn) * SESSIONS_PER_SECOND);
        return submit(turn);
      },
      limit: await acceptLimit(bench),
    });

    report.sample('service, Idempotency-Key', turns.typical('keyed'));
    report.sample('service, SubmitSession', turns.typical('session'));
    report.sample('limit', turns.typical('limit'));
    report.atLeast('Idempotency-Key, rate to the limit', turns.ratio('keyed', 'limit'), 0.5);
    report.atLeast('SubmitSession, rate to the limit', turns.ratio('session', 'limit'), 0.3);
    await reportLost(report, databaseUrl, turns.answered('keyed') + turns.answered('session'));
  },
};

/** More than any machine submits: a turn must not run out of them. */
const SESSIONS_PER_SECOND = 20_000;

/** Submissions of which each has a key of its own. */
function keyedSubmissions(formId: string): Call {
  let count = 0;
  const request = () => {
    count += 1;
    return submissionRequest(`/api/forms/${formId}/submissions`, { 'idempotency-key': `bench-${count}` });
  };
  return { request, expect: 201 };
}

/** Puts open sessions into the table, and makes requests that submit one after the other. */
function freshSessions(url: string, form: { formId: string; versionId: string }) {
  const body = JSON.stringify({ answers: contactAnswers });
  let made = 0;
  let used = 0;
  return {
    async make(count: number) {
      used = made;
      await queryOn(url, SESSIONS, [form.formId, form.versionId, made + 1, made + count]);
      made += count;
    },
    request: () => {
      used += 1;
      return requestBytes({
        method: 'POST',
        path: `/v1/sessions/sess_${used.toString(16).padStart(32, '0')}/submit`,
        headers: { 'content-type': 'application/json', authorization: `Bearer ${apiKey}` },
        body,
      });
    },
  };
}

const SESSIONS = `
insert into sessions (id, project_id, form_id, version_id, prefill, metadata, created_at, expires_at)
select 'sess_' || lpad(to_hex(n), 32, '0'), f.project_id, f.id, $2, '{}', '{}', now(), now() + interval '1 hour'
from forms f, generate_series($3::int, $4::int) n where f.id = $1`;
