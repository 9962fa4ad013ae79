import { describe, expect, it } from 'vitest';
import { createServerDatabase } from '../support/database.ts';
import { startProcess } from '../support/processes.ts';
import { startReceiver } from '../support/receiver.ts';
import { openRecordingProxy } from '../support/recording-proxy.ts';
import { temporaryFolder } from '../support/spawn.ts';
import { until } from '../support/until.ts';

/*
 * Rows of projects can be moved to a database of their own only as long as what runs for each submission says whose
 * rows it wants: see the cells in docs/scaling.md.
 */

/** What holds rows of projects, and grows with what people do. */
const TABLES =
  'submissions|events|deliveries|attempts|delivery_queue|sessions|uploads|forms|form_versions|form_counters|webhooks';

/**
 * What restricts a reference to rows of one project: its id, or one that begins with its time or belongs to one form.
 */
const RESTRICTING = 'id|project_id|form_id|webhook_id|event_id|session_id|submission_id|delivery_id';

/** What may look at rows of all projects: each process looks for work. */
const ACROSS_PROJECTS: [name: string, pattern: RegExp][] = [
  [
    'asks whether something is due',
    /^select now\(\) as at, exists \(select from events where fanned_out_at is null/,
  ],
  [
    'reads events without deliveries',
    /^with found as materialized \( select id, row_number\(\) .* from events where fanned_out_at is null/,
  ],
  [
    'claims due deliveries',
    /^with page as materialized \( select id, share, receiver, channel, due_at from delivery_queue/,
  ],
  [
    'makes deliveries of a receiver wait',
    /^with seen as materialized .* share = \$1 and receiver = \$2 and due_at >= \$3/,
  ],
];

/** What each minute removes whatever is older than it may be, of all projects. */
const SWEEPS: [name: string, pattern: RegExp][] = [
  [
    'old deliveries with their attempts',
    /^with gone as materialized \(select id from deliveries where id < \$1/,
  ],
  ['events of which all is delivered', /^delete from events where \(id\) in/],
  ['webhooks that were deleted', /from webhooks where deleted_at is not null/],
  ['drafts that nobody activated', /^delete from forms where \(id\) in .* status = 'draft'/],
  ['sessions of visitors', /^with removed as \( delete from sessions/],
  ['files that nothing was submitted with', /^with removed as \( delete from uploads/],
  ['forms that were deleted', /from "forms" as "f0" where "f0"\."deleted_at" is not null/],
  ['forms that keep submissions for some days', /^select id, retention_days from forms/],
];

describe('the statements of the hot path', () => {
  it('name the project, or an id that carries its time, for each table that grows', async () => {
    await using service = await startRecorded();
    const { call, statements } = service;
    const { form, webhook } = await givenFormWithWebhooks(service);
    statements.splice(0);

    await acceptSubmissions(service, form.id);
    await readSubmissions(service, form.id);
    await call('GET', `/v1/webhooks/${webhook.id}/deliveries?status=failed`);
    await call('GET', `/v1/forms/${form.id}/deliveries`);
    await until(async () => {
      const { deliveries } = await call('GET', `/v1/webhooks/${webhook.id}/deliveries`);
      return deliveries.every(({ status }: { status: string }) => status === 'delivered');
    });

    const seen = [...new Set(statements.map((text) => text.replaceAll(/\s+/g, ' ').trim()))];
    const across = (text: string) =>
      [...ACROSS_PROJECTS, ...SWEEPS].find(([, pattern]) => pattern.test(text))?.[0];
    const unrestricted = seen
      .filter((text) => across(text) === undefined)
      .flatMap((text) => unrestrictedReferences(text).map((reference) => ({ reference, text })));
    expect(unrestricted).toEqual([]);
    // It must have seen what it is about.
    for (const part of [
      /insert into submissions/,
      /from sessions where id = any/,
      /insert into deliveries/,
    ]) {
      expect(seen.some((text) => part.test(text))).toBe(true);
    }
    expect(seen.map(across)).toEqual(expect.arrayContaining(['claims due deliveries']));
  });

  it.each([
    ['select * from submissions where created_at > $1', ['submissions']],
    ['select * from submissions where form_id = $1 and id < $2', []],
    ['select * from submissions where id < $1', ['submissions']],
    ['select 1 from (select id from events order by id) e where id = $1', ['events']],
    ['select 1 from events e join deliveries d on d.event_id = e.id where e.id = $1', []],
    ['select 1 from given g join events e on e.kind = g.kind', ['events e']],
    ['update delivery_queue q set error = $1 where q.due_at < $2', ['delivery_queue q']],
    ['delete from uploads using given g where uploads.id = g.id', []],
  ])('are told apart: %s', (text, references) => {
    expect(unrestrictedReferences(text)).toEqual(references);
  });
});

/** The references to tables that grow without a condition on whose rows they are, in the same query. */
function unrestrictedReferences(text: string): string[] {
  const reference = new RegExp(
    `\\b(?:from|join|update) "?(${TABLES})"?(?: as)? "?((?!where|set|on|order|using|left|cross|join|limit)\\w+)?"?`,
    'g',
  );
  return [...text.matchAll(reference)]
    .filter(({ index, 1: table = '', 2: alias }) => {
      const names = alias === undefined ? `(?:${table}\\.)?` : `"?${alias}"?\\.`;
      const column = `(?<![.\\w"])${names}"?(?:${RESTRICTING})"?`;
      const other = `(?:[\\w"]+\\.)"?(?:${RESTRICTING}|\\w*[iI]d)"?`;
      const condition = new RegExp(`${column} (?:=|in) |${other} = ${column}(?![\\w])| where 1 = 0 `);
      return !condition.test(`${ownPart(text.slice(index))} `);
    })
    .map(([found]) => found.replace(/^(from|join|update) /, '').trim());
}

/** A query from a reference on, up to its end, without the queries within it. */
function ownPart(text: string): string {
  let depth = 0;
  let part = '';
  for (let index = 0; index < text.length; index += 1) {
    const inner = text[index] === '(' && /^\( ?(select|with) /.test(text.slice(index));
    if (inner || (depth > 0 && text[index] === '(')) depth += 1;
    else if (depth > 0 && text[index] === ')') depth -= 1;
    else if (depth === 0) {
      if (text.slice(index).startsWith(' union ')) return part;
      part += text[index];
      // More brackets are closed than opened: the query that this is a part of has ended.
      if (part.split(')').length > part.split('(').length) return part;
    }
  }
  return part;
}

/** A service whose statements are recorded, beside a receiver that refuses the first deliveries to `/slow`. */
async function startRecorded() {
  await using owned = new AsyncDisposableStack();
  const { databaseUrl } = owned.use(await createServerDatabase());
  const proxy = owned.use(await openRecordingProxy(databaseUrl));
  const folder = owned.use(temporaryFolder());
  const receiver = owned.use(
    await startReceiver(({ path, count }, response) => {
      response.writeHead(path === '/slow' && count < 8 ? 500 : 204).end();
    }),
  );
  const key = 'a-key-for-the-statements-of-the-hot-path';
  const env = { WEBHOOK_ALLOW_PRIVATE: 'true', WEBHOOK_RETRY_SCHEDULE: '0,1,1,1,1,1,1,1' };
  const process = { dataDir: folder.path, databaseUrl: proxy.databaseUrl, key, env };
  const { url } = await startProcess(owned, process);
  const call = async (method: string, path: string, body?: object, more: Record<string, string> = {}) => {
    const response = await fetch(`${url}${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...more },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${text}`);
    return text.startsWith('{') ? JSON.parse(text) : text;
  };
  const moved = owned.move();
  return {
    call,
    receiverUrl: receiver.url,
    statements: proxy.statements,
    [Symbol.asyncDispose]: () => moved.disposeAsync(),
  };
}

async function givenFormWithWebhooks({ call, receiverUrl }: Recorded) {
  const { form } = await call('POST', '/api/forms/create', {
    name: 'Contact',
    slug: 'contact',
    fields: [{ id: 'email', type: 'email', required: true }],
    delivery: { type: 'email' },
  });
  await call('POST', form.activate_url, { email: 'owner@example.com' });
  const events = ['submission.created'];
  await call('POST', '/v1/webhooks', { url: receiverUrl, events });
  const slow = { url: `${receiverUrl}/slow`, form_id: form.id, events };
  const { webhook } = await call('POST', '/v1/webhooks', slow);
  return { form, webhook };
}

/** By REST without a key, repeated, and through a session. */
async function acceptSubmissions({ call }: Recorded, formId: string): Promise<void> {
  const answers = { email: 'ada@example.com' };
  const path = `/api/forms/${formId}/submissions`;
  await call('POST', path, { answers });
  for (let time = 0; time < 2; time += 1)
    await call('POST', path, { answers }, { 'idempotency-key': 'once' });
  for (let time = 0; time < 2; time += 1) {
    const { session } = await call('POST', `/v1/forms/${formId}/sessions`, { prefill: answers });
    await call('GET', `/v1/sessions/${session.id}`);
    await call('POST', `/v1/sessions/${session.id}/submit`, { answers });
  }
}

async function readSubmissions({ call }: Recorded, formId: string): Promise<void> {
  const list = `/v1/forms/${formId}/submissions`;
  const { submissions, next_cursor } = await call('GET', `${list}?limit=2`);
  await call('GET', `/v1/submissions/${submissions[0].id}`);
  await call('GET', `${list}?limit=2&cursor=${encodeURIComponent(next_cursor)}`);
  await call('GET', `${list}?source=api&status=spam&created_after=2020-01-01T00:00:00Z&offset=1`);
  await call('GET', `${list}/export?format=csv`);
  await call('GET', `/v1/forms/${formId}/sessions?status=open`);
}

type Recorded = Awaited<ReturnType<typeof startRecorded>>;
