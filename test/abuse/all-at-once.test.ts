import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { beforeAll, describe, expect, it } from 'vitest';
import { engines } from '../support/database.ts';
import { metricIn } from '../support/metrics.ts';
import { startReceiver } from '../support/receiver.ts';
import { freePort } from '../support/spawn.ts';
import { until } from '../support/until.ts';
import { type AttackedService, givenForm, startAttackedService } from './attacked-service.ts';
import type { Targets } from './attackers-process.ts';
import { REFERENCE_MS, timeReferenceWork, waitedForProcessor } from './processor-wait.ts';

/** How long all attacks go on once they have arrived: `ABUSE_SECONDS=1200 npm run test:abuse all-at-once` for twenty minutes. */
const SECONDS = Number(process.env.ABUSE_SECONDS ?? 7);
const CLIENTS = 50;
/**
 * The most that what others ask may take, but for waiting for a processor, on a machine as fast as `REFERENCE_MS` says.
 * It counts from `COUNTED_FROM_MS` on: what a process is asked for the first time takes some ten times as long.
 */
const WAIT_MS = 1_000;
const COUNTED_FROM_MS = 2_000;
/** The share of what they ask that this bound is for. */
const SHARE = SECONDS < 60 ? 0.95 : 0.99;

/** How often the connections to the database are counted. */
const SAMPLE_MS = 250;

type Services = Record<(typeof engines)[number], AttackedService & AsyncDisposable>;
let services: Services;
let metricsUrl: string;

// One that rests costs the other nothing.
beforeAll(async () => {
  const METRICS_PORT = String(await freePort());
  metricsUrl = `http://127.0.0.1:${METRICS_PORT}/metrics`;
  const start = (engine: keyof Services) =>
    startAttackedService(engine, {
      WEBHOOK_ALLOW_PRIVATE: 'true',
      METRICS_PORT: engine === 'postgres' ? METRICS_PORT : 'off',
    });
  const [pglite, postgres] = await Promise.all([start('pglite'), start('postgres')]);
  services = { pglite, postgres };
});

describe.each(engines)('on %s', { timeout: SECONDS * 1_000 + 120_000 }, (engine) => {
  it(`serves ${CLIENTS} others while strangers do all they can, and loses nothing`, async () => {
    await using receiver = await startReceiver();
    await using silent = await startReceiver(() => {});
    await using service = services[engine];
    const formId = await givenForm(service, { delivery: { type: 'webhook', url: receiver.url } });
    const targets = await givenTargets(service, formId, silent.url);

    using attackers = startAttackers(targets);
    await until(async () => (await savedIn(service, targets.sessions)).includes('xxxx'), 60_000);
    const begun = performance.now();
    const ends = begun + SECONDS * 1_000;
    const measuring = measureSlowness(ends);
    const sampling = engine === 'postgres' ? sampleConnections(ends) : [];
    const clients = Array.from({ length: CLIENTS }, (_, index) => useNormally(service, formId, index, ends));
    const seen = await Promise.race([Promise.all(clients), endOf(service)]);
    attackers.kill('SIGKILL');
    const [, signal] = await once(attackers, 'exit');

    const samples = await sampling;
    const slowness = await measuring;

    expect(signal, 'the attackers ended by themselves').toBe('SIGKILL');
    const failures = seen.flatMap((client) => client.failures);
    expect(failures).toEqual([]);
    const calls = seen.flatMap((client) => client.calls);
    expect(Math.min(...seen.map((client) => client.calls.length)), 'calls of each kind').toBeGreaterThan(3);
    const counted = calls.filter((call) => call.begun > begun + COUNTED_FROM_MS);
    const waits = counted.map((call) => call.waitMs / slowness).sort((a, b) => a - b);
    expect(waits[Math.floor(waits.length * SHARE)]).toBeLessThan(WAIT_MS);
    // On the embedded database statements take turns.
    expect(samples.length).toBeGreaterThan(engine === 'postgres' ? SECONDS : -1);
    expect(samples.filter(({ strangers, limit }) => !(strangers < limit))).toEqual([]);
    const acknowledged = seen.flatMap((client) => client.acknowledged);
    expect(await missingIn(service, formId, acknowledged)).toEqual([]);
    expect(await openedBy(service, targets.former)).toEqual([]);
    console.log(
      `${engine}: ${acknowledged.length} submissions acknowledged, waits of ${waits.length} of ${calls.length} calls ` +
        `on a machine ${slowness.toFixed(2)} times as slow as the bound is for: ` +
        [0.5, 0.9, SHARE, 1]
          .map(
            (share) => `${share * 100} % ${Math.round(waits[Math.ceil(waits.length * share) - 1] ?? 0)} ms`,
          )
          .join(', '),
    );
    if (samples.length > 0) {
      const most = (by: 'strangers' | 'projects' | 'used') => Math.max(...samples.map((each) => each[by]));
      console.log(
        `connections at most of ${samples[0]?.limit}, in ${samples.length} samples: ${most('strangers')} for strangers, ` +
          `${most('projects')} for projects, ${most('used')} in all`,
      );
    }
    await until(
      () => missingAt(receiver.received, acknowledged).length === 0,
      60_000,
      () => `${missingAt(receiver.received, acknowledged).length} of ${acknowledged.length} not delivered`,
    );
  });
});

/** How many times as slow the machine is as that for which the bound is written, while everything goes on. */
async function measureSlowness(ends: number): Promise<number> {
  const works: number[] = [];
  for (; performance.now() < ends; await sleep(SAMPLE_MS)) works.push(timeReferenceWork());
  works.sort((a, b) => a - b);
  return Math.max(1, (works[works.length >> 1] ?? 0) / REFERENCE_MS);
}

/** For whom the connections to the database are used, again and again. */
async function sampleConnections(ends: number): Promise<Sample[]> {
  const samples: Sample[] = [];
  for (; performance.now() < ends; await sleep(SAMPLE_MS)) {
    const metrics = await (await fetch(metricsUrl)).text();
    const of = (name: string, labels = {}) => metricIn(metrics, `forms_database_connections${name}`, labels);
    samples.push({
      strangers: of('_held', { by: 'strangers' }) ?? Number.NaN,
      projects: of('_held', { by: 'projects' }) ?? Number.NaN,
      used: of('', { state: 'in_use' }) ?? Number.NaN,
      limit: of('_limit') ?? Number.NaN,
    });
  }
  return samples;
}

/** Rejects with what the service wrote when it ends. */
async function endOf({ process: service }: AttackedService): Promise<never> {
  const { code, signal, errors } = await service.ended;
  throw new Error(`The service ended (${code ?? signal}): ${errors.slice(-2_000)}`);
}

/** What the attackers are told of a service: things that strangers can find out. */
async function givenTargets(service: AttackedService, formId: string, silentUrl: string): Promise<Targets> {
  const cv = { id: 'cv', type: 'file' };
  const uploadForm = await givenForm(service, { fields: [cv] });
  const savingForm = await givenForm(service, { settings: { allowPartial: true } });
  const invited = await Promise.all(
    Array.from({ length: 4 }, () => call(service, `/v1/forms/${savingForm}/sessions`, {})),
  );
  const sessions = invited.map(({ session }) => new URL(session.url).pathname);
  const { url, grpcUrl } = service;
  const former = await givenFormerOwner(service);
  return { url, grpcUrl, formId, uploadForm, silentUrl, savingForm, sessions, former };
}

/** A form that has been handed over, and what its former owner has left of it. */
async function givenFormerOwner(service: AttackedService): Promise<Targets['former']> {
  const formId = await givenForm(service);
  const confirm = await follow(service, 'owner@example.com', /\/mail\/confirm-owner\.[\w.-]+/);
  await call(service, '/headlessforms.v1.OwnersService/RequestSignIn', { email: 'owner@example.com' }, null);
  const link = await linkTo(service, 'owner@example.com', /\/owner\/sign-in\/[\w.-]+/);
  const token = link.split('/').at(-1);
  const { sessionToken } = await call(service, '/headlessforms.v1.OwnersService/SignIn', { token }, null);
  await call(service, `/v1/forms/${formId}/submissions`, { answers: { email: 'ada@example.com' } });
  await call(service, `/v1/forms/${formId}/owner`, { email: 'heir@example.com' });
  const taken = await follow(service, 'heir@example.com', /\/mail\/change-owner\.[\w.-]+/);
  return { formId, session: sessionToken, links: [confirm, link, taken] };
}

/** Presses the button of a mailed link. Returns its path. */
async function follow(service: AttackedService, to: string, pattern: RegExp): Promise<string> {
  const path = await linkTo(service, to, pattern);
  const headers = { origin: service.url, accept: 'application/json' };
  const body = new URLSearchParams();
  const reply = await fetch(service.url + path, { method: 'POST', headers, body, redirect: 'manual' });
  // A link that also signs in leads on.
  if (reply.status >= 400) throw new Error(`${path} answered ${reply.status}: ${await reply.text()}`);
  return path;
}

/** The path of the newest link of a kind that was mailed to an address. */
async function linkTo({ dataDir }: AttackedService, to: string, pattern: RegExp): Promise<string> {
  const folder = join(dataDir, 'mail');
  const find = () => {
    const names = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.eml')) : [];
    const texts = names
      .sort()
      .map((name) => readFileSync(join(folder, name), 'utf8').replaceAll('=\r\n', ''));
    const own = texts.filter((text) => new RegExp(`^To: .*${to}`, 'm').test(text));
    return own.flatMap((text) => pattern.exec(text)?.[0] ?? []).at(-1);
  };
  await until(() => find() !== undefined, 30_000);
  return find() ?? '';
}

async function call(service: AttackedService, path: string, body: object, key: string | null = service.key) {
  const reply = await fetch(service.url + path, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(key !== null && { authorization: `Bearer ${key}` }),
    },
    body: JSON.stringify(body),
  });
  if (!reply.ok) throw new Error(`${path} answered ${reply.status}: ${await reply.text()}`);
  return JSON.parse(await reply.text());
}

/** What is saved in sessions, by which the attack is known to have arrived. */
async function savedIn({ url, key }: AttackedService, sessions: string[]): Promise<string> {
  const headers = { authorization: `Bearer ${key}` };
  const ids = sessions.map((path) => path.split('/').at(-1));
  const replies = await Promise.all(ids.map((id) => fetch(`${url}/v1/sessions/${id}`, { headers })));
  return (await Promise.all(replies.map((reply) => reply.text()))).join();
}

/** What a former owner can still open of these. */
async function openedBy(
  service: AttackedService,
  { formId, session, links }: Targets['former'],
): Promise<string[]> {
  const body = JSON.stringify({ formId });
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${session}` };
  const path = '/headlessforms.v1.OwnersService/ListOwnedSubmissions';
  const asked = [
    [path, { headers, body }],
    ...links.map(
      (link) => [link, { headers: { origin: service.url }, body: new URLSearchParams() }] as const,
    ),
  ] as const;
  const opened: string[] = [];
  for (const [path, init] of asked) {
    const { status } = await fetch(service.url + path, { method: 'POST', redirect: 'manual', ...init });
    if (status < 400) opened.push(`${path}: ${status}`);
  }
  return opened;
}

/**
 * A process of its own, after everything else by the scheduler's priority: it is to harm the service by what it asks.
 */
function startAttackers(targets: Targets): ChildProcess {
  const script = join(import.meta.dirname, 'attackers-process.ts');
  return spawn('nice', ['-n', '5', process.execPath, script, JSON.stringify(targets)], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
}

/** One of the others: submits, reads the form and opens the page of a session, from an address of its own. */
async function useNormally(
  service: AttackedService,
  formId: string,
  index: number,
  ends: number,
): Promise<Seen> {
  const seen: Seen = { acknowledged: [], failures: [], calls: [] };
  await using dispatcher = disposable(new Agent({ localAddress: `127.0.1.${index + 1}`, connections: 1 }));
  const { key, url } = service;
  const { pid } = service.process.child;
  const ask = async (method: 'GET' | 'POST', path: string, body?: object, more = {}) => {
    const [begun, waitedBefore] = [performance.now(), waitedForProcessor(pid)];
    const response = await request(`${url}${path}`, {
      dispatcher,
      method,
      headers: {
        'content-type': 'application/json',
        ...more,
        ...(path.startsWith('/v1') && { authorization: `Bearer ${key}` }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.body.text();
    seen.calls.push({ begun, waitMs: performance.now() - begun - (waitedForProcessor(pid) - waitedBefore) });
    if (response.statusCode < 300) return text;
    if (response.statusCode !== 503 || response.headers['retry-after'] === undefined) {
      seen.failures.push(`${method} ${path}: ${response.statusCode} ${text}`);
    }
  };
  // Spread over the first second, as strangers to each other are.
  await sleep((1_000 * index) / CLIENTS);
  for (let round = 0; performance.now() < ends; round += 1) {
    try {
      const answers = { email: 'ada@example.com', message: `Round ${round}` };
      // Strangers guess it, before and after.
      const key = { 'idempotency-key': `client-${index}-${round}` };
      const submitted = await ask('POST', `/api/forms/${formId}/submissions`, { answers }, key);
      if (submitted !== undefined) seen.acknowledged.push(JSON.parse(submitted).submission_id);
      await ask('GET', `/v1/forms/${formId}/agent-schema`);
      const opened = await ask('POST', `/v1/forms/${formId}/sessions`, {});
      if (opened !== undefined) await ask('GET', new URL(JSON.parse(opened).session.url).pathname);
    } catch (error) {
      seen.failures.push(String(error));
    }
    await sleep(1_100);
  }
  return seen;
}

/** Those of these submissions that are not in what the form's owner exports, or are there with others' answers. */
async function missingIn({ url, key }: AttackedService, formId: string, ids: string[]): Promise<string[]> {
  const response = await fetch(`${url}/v1/forms/${formId}/submissions/export?format=ndjson`, {
    headers: { authorization: `Bearer ${key}` },
  });
  expect(response.status).toBe(200);
  const own = (await response.text()).split('\n').filter((line) => line.includes('"Round '));
  const stored = new Set(own.flatMap((line) => JSON.parse(line).id));
  return ids.filter((id) => !stored.has(id));
}

function missingAt(received: { body: string }[], ids: string[]): string[] {
  const arrived = new Set(received.map(({ body }) => JSON.parse(body).data.submissionId));
  return ids.filter((id) => !arrived.has(id));
}

function disposable(agent: Agent): Agent & AsyncDisposable {
  return Object.assign(agent, { [Symbol.asyncDispose]: () => agent.destroy() });
}

type Sample = Record<'strangers' | 'projects' | 'used' | 'limit', number>;

type Seen = { acknowledged: string[]; failures: string[]; calls: { begun: number; waitMs: number }[] };
