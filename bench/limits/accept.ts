import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PGlite } from '@electric-sql/pglite';
import { Pool } from 'pg';
import { Agent, request } from 'undici';
import { signWebhook } from '../../src/domain/delivery/signature.ts';
import { serve } from '../support/serve.ts';

/**
 * The least that a durable submission can cost: bare `node:http`, `JSON.parse`, and one insert for all
 * submissions that wait, with their events, into the service's own tables. Checks nothing. With a `webhook`
 * each is also posted to it after the commit, signed, from memory and without a queue.
 */
serve(async (input: AcceptLimitInput) => {
  const store = input.databaseUrl === undefined ? await onPglite(input) : onPostgres(input.databaseUrl);
  const write = grouped(store);
  const post = input.webhook === undefined ? () => {} : postsTo(input.webhook);
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    const answer = async () => {
      const { source, answers }: Body = JSON.parse(Buffer.concat(chunks).toString());
      const id = nextId();
      const createdAt = new Date().toISOString();
      const event = { id: `evt_${id}`, event: 'submission.created', createdAt };
      const data = {
        submissionId: `sub_${id}`,
        formId: FORM,
        source,
        status: 'accepted',
        answers,
        createdAt,
      };
      const body = JSON.stringify({ ...event, data });
      await write({ id, source, answers, body });
      post(event.id, body);
      const reply = JSON.stringify({ ok: true, submission_id: `sub_${id}` });
      response.writeHead(201, {
        'content-type': 'application/json; charset=utf-8',
        'content-length': Buffer.byteLength(reply),
      });
      response.end(reply);
    };
    request.on('end', () => void answer());
  });
  server.listen(0, '127.0.0.1');
  await new Promise((listening) => server.once('listening', listening));
  const address = server.address() as AddressInfo;
  return { ready: { port: address.port } };
});

function onPostgres(connectionString: string): Store {
  // One group at a time: two in flight gain nothing on two cores.
  const pool = new Pool({ connectionString, max: 1 });
  return async (rows) => {
    await pool.query({ name: 'store', text: INSERT, values: [JSON.stringify(rows)] });
  };
}

async function onPglite({ dataDir }: AcceptLimitInput): Promise<Store> {
  const database = await PGlite.create(dataDir ?? '');
  return async (rows) => {
    await database.query(INSERT, [JSON.stringify(rows)]);
  };
}

/** Writes rows in groups: while one is under way the next one gathers, for at least a turn of the event loop. */
function grouped(store: Store): (row: Row) => Promise<void> {
  let waiting: { row: Row; resolve(): void }[] = [];
  let running = false;
  const run = async () => {
    while (waiting.length > 0) {
      const group = waiting;
      waiting = [];
      await store(group.map(({ row }) => row));
      for (const waiter of group) waiter.resolve();
      await new Promise(setImmediate);
    }
    running = false;
  };
  return (row) =>
    new Promise((resolve) => {
      waiting.push({ row, resolve });
      if (running) return;
      running = true;
      setImmediate(() => void run());
    });
}

/** Posts one after the other over as many connections as the service uses. */
function postsTo({ url, secret }: Webhook): (id: string, body: string) => void {
  const dispatcher = new Agent({ connections: 64 });
  return (id, body) => {
    const signature = signWebhook({ id, body, at: Date.now(), secret });
    const headers = { 'content-type': 'application/json', ...signature };
    void request(url, { method: 'POST', dispatcher, headers, body }).then((response) => response.body.dump());
  };
}

const FORM = 'form_limit';

const INSERT = `
with input as (
  select * from json_to_recordset($1::json) as r("id" text, "source" text, "answers" json, "body" text)
), stored as (
  insert into submissions (id, project_id, form_id, version_id, source, answers, metadata, status, created_at)
  select 'sub_' || "id", 'prj_limit', '${FORM}', 'ver_limit', "source", "answers", '{}', 'accepted', now() from input
)
insert into events (id, project_id, form_id, type, submission_id, body, created_at, fanned_out_at)
select 'evt_' || "id", 'prj_limit', '${FORM}', 'submission.created', 'sub_' || "id", "body", now(), null from input`;

const start = Date.now().toString(36).padStart(12, '0');
let count = 0;

function nextId(): string {
  count += 1;
  return start + count.toString(36).padStart(14, '0');
}

type Webhook = { url: string; secret: string };
type Body = { source: string; answers: Record<string, unknown> };
type Row = Body & { id: string; body: string };
type Store = (rows: Row[]) => Promise<void>;

/** PostgreSQL at `databaseUrl`, or PGlite in `dataDir`; both with the service's tables. */
type AcceptLimitInput = { databaseUrl?: string; dataDir?: string; webhook?: Webhook };
