import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient, type Interceptor, type Transport } from '@connectrpc/connect';
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from '@connectrpc/connect-node';
import { expect, it } from 'vitest';
import { SubmissionsService } from '../../gen/headlessforms/v1/submissions_pb.js';
import { runOn } from '../support/postgres.ts';
import { seedSubmissions } from '../support/seed.ts';
import {
  type AttackedService,
  givenForm,
  HEALTH_MS,
  harmDone,
  MEMORY_MIB,
  sharedService,
  UNLIMITED_RATES,
} from './attacked-service.ts';

const COUNT = 60;

/** Storing sixty and reading them nine times takes seconds, and longer beside other tests. */
const TIMEOUT_MS = 120_000;
const LARGE_BYTES = 250_000;

const MANY = 300_000;
const WALKERS = 8;
const SUBMITS = 200;
/** How long a submit may take beside them. Without a bound on walks it took seconds. */
const SUBMIT_MS = 1_000;

/** What gRPC clients take unless they are told otherwise. */
const DEFAULT_CLIENT_BYTES = 4 * 1024 * 1024;

it.concurrent.each(['pglite', 'postgres'] as const)(
  'sixty of the largest submissions, read on %s',
  async (engine) => {
    const service = await sharedService(engine, UNLIMITED_RATES);
    const formId = await givenLargeSubmissions(service);
    const counts: number[] = [];

    const harm = await harmDone(service, async () => {
      const readers = await Promise.all(Array.from({ length: 4 }, () => openButNeverRead(service, formId)));
      for (const limit of ['limit=100', 'limit=100&offset=1'])
        counts.push(await countByRest(service, formId, limit));
      for (const transport of transports(service)) counts.push(await countByRpc(transport, formId));
      for (const format of ['csv', 'ndjson']) counts.push(await countExported(service, formId, format));
      for (const reader of readers) reader.destroy();
    });

    expect(counts).toEqual([COUNT, COUNT - 1, ...Array.from({ length: 7 }, () => COUNT)]);
    expect(harm.slowestHealthMs).toBeLessThan(HEALTH_MS);
    expect(harm.addedMib).toBeLessThan(MEMORY_MIB);
  },
  TIMEOUT_MS,
);

it('hundreds of thousands of submissions, skipped again and again', { timeout: TIMEOUT_MS }, async () => {
  const service = await sharedService('postgres', UNLIMITED_RATES);
  const { url, key, databaseUrl = '' } = service;
  const [formId, others] = [await givenForm(service), await givenForm(service)];
  await seedSubmissions((...statement) => runOn(databaseUrl, ...statement), formId, MANY);
  const headers = { authorization: `Bearer ${key}` };
  const statuses = new Map<number, number>();
  const waits: number[] = [];

  const harm = await harmDone(service, async () => {
    let over = false;
    const walk = async () => {
      const { status } = await fetch(`${url}/v1/forms/${formId}/submissions?limit=1&offset=${MANY - 10}`, {
        headers,
      });
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      // What many requests come to is another matter.
      if (status === 429) await sleep(20);
    };
    const walkers = Array.from({ length: WALKERS }, async () => {
      while (!over) await walk();
    });
    for (let n = 0; n < SUBMITS; n += 1) waits.push(await timeToSubmit(url, others));
    over = true;
    await Promise.all(walkers);
  });

  console.log(
    `submits beside deep offsets: ${Math.round(Math.max(...waits))} ms at most, walks ${JSON.stringify([...statuses])}`,
  );
  expect(new Set(statuses.keys())).toEqual(new Set([200, 429]));
  expect(Math.max(...waits)).toBeLessThan(SUBMIT_MS);
  expect(harm.slowestHealthMs).toBeLessThan(HEALTH_MS);
  expect(harm.addedMib).toBeLessThan(MEMORY_MIB);
});

async function timeToSubmit(url: string, formId: string): Promise<number> {
  const begun = performance.now();
  const response = await fetch(`${url}/api/forms/${formId}/submissions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ answers: { email: 'ada@example.com' } }),
  });
  if (response.status !== 201) throw new Error(await response.text());
  return performance.now() - begun;
}

/** A form with as many submissions of nearly the largest size as a list by REST can hold. */
async function givenLargeSubmissions(service: AttackedService): Promise<string> {
  const ids = ['a', 'b', 'c'];
  const fields = ids.map((id) => ({ id, type: 'textarea', maxLength: 100_000 }));
  const formId = await givenForm(service, { fields });
  const text = 'x'.repeat(LARGE_BYTES / ids.length);
  const body = JSON.stringify({ answers: Object.fromEntries(ids.map((id) => [id, text])) });
  const submit = async () => {
    const url = `${service.url}/api/forms/${formId}/submissions`;
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    });
    if (response.status !== 201) throw new Error(await response.text());
  };
  for (let n = 0; n < COUNT; n += 6) await Promise.all(Array.from({ length: 6 }, submit));
  return formId;
}

/** A client that asks for the largest list and takes none of it. */
async function openButNeverRead({ url, key }: AttackedService, formId: string) {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  await once(socket, 'connect');
  socket.pause();
  socket.write(
    `GET /v1/forms/${formId}/submissions?limit=100 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${key}\r\n\r\n`,
  );
  return socket;
}

async function countByRest({ url, key }: AttackedService, formId: string, query: string): Promise<number> {
  const headers = { authorization: `Bearer ${key}` };
  const response = await fetch(`${url}/v1/forms/${formId}/submissions?${query}`, { headers });
  const { submissions } = (await response.json()) as { submissions: unknown[] };
  return submissions.length;
}

/** Clients of every protocol. */
function transports({ url, grpcUrl, key }: AttackedService): Transport[] {
  const authorize: Interceptor = (next) => (request) => {
    request.header.set('authorization', `Bearer ${key}`);
    return next(request);
  };
  const options = { interceptors: [authorize], readMaxBytes: DEFAULT_CLIENT_BYTES };
  return [
    createConnectTransport({ ...options, baseUrl: url, httpVersion: '1.1' }),
    createConnectTransport({ ...options, baseUrl: url, httpVersion: '1.1', useBinaryFormat: false }),
    createConnectTransport({ ...options, baseUrl: grpcUrl, httpVersion: '2' }),
    createGrpcWebTransport({ ...options, baseUrl: url, httpVersion: '1.1' }),
    createGrpcTransport({ ...options, baseUrl: grpcUrl }),
  ];
}

async function countByRpc(transport: Transport, formId: string): Promise<number> {
  const client = createClient(SubmissionsService, transport);
  let count = 0;
  for (let pageToken = ''; ; ) {
    const page = await client.listSubmissions({ formId, pageSize: 100, pageToken });
    count += page.submissions.length;
    pageToken = page.nextPageToken;
    if (pageToken === '') return count;
  }
}

/** How many lines a file has that hold an answer. */
async function countExported({ url, key }: AttackedService, formId: string, format: string): Promise<number> {
  const headers = { authorization: `Bearer ${key}` };
  const response = await fetch(`${url}/v1/forms/${formId}/submissions/export?format=${format}`, { headers });
  const lines = (await response.text()).split('\n');
  return lines.filter((line) => line.includes('xxx')).length;
}
