import { createHistogram, type RecordableHistogram } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { create, toBinary } from '@bufbuild/protobuf';
import { AwaitSessionRequestSchema } from '../../gen/headlessforms/v1/sessions_pb.js';
import { type Agent, startAgent } from '../../test/mcp/agent.ts';
import type { Row } from '../support/bench.ts';
import { openConnection, requestBytes } from '../support/connection.ts';
import { contactAnswers, contactForm } from '../support/form.ts';
import { grpcFrame, openGrpcConnection } from '../support/grpc.ts';
import { latencies } from '../support/load.ts';
import { queryOn } from '../support/postgres.ts';
import type { Report } from '../support/report.ts';
import { apiKey, objectAt, type Service } from '../support/service.ts';

/** Agents that wait at once, each for a session of its own. */
const WAITS = 5_000;

export const awaiting: Row = {
  name: 'await',
  what: 'from the submit of a session to the answer for those who wait for it, by the same and by another process; what 5,000 waits hold',
  async run(bench, report) {
    const databaseUrl = await bench.databases.create();
    const env = {
      DATABASE_URL: databaseUrl,
      DELIVERY_WORKERS: '0',
      MAX_WAITS_PER_KEY: String(2 * WAITS),
      MAX_CONNECTIONS: String(2 * WAITS),
      MAX_CONNECTIONS_PER_CLIENT: String(2 * WAITS),
    };
    const [here, there] = [await bench.service(env), await bench.service(env)];
    const { formId } = await here.publish(contactForm('http://127.0.0.1:9/'));
    const count = bench.scaled(300);
    for (const [name, submitter] of [['the same process', here] as const, ['another', there] as const]) {
      await using meter = await openMeter(here, formId);
      await meter.measure(submitter, 20);
      meter.reset();
      await meter.measure(submitter, count);
      for (const [way, lags] of meter.lags()) {
        const { p50Ms, p99Ms } = latencies(lags);
        report.fact(`submitted by ${name}, ${way}, p50`, `${p50Ms.toFixed(0)} ms`);
        report.atMost(`submitted by ${name}, ${way}, p99`, p99Ms, 300, 'ms');
      }
    }

    const sessionIds = await insertSessions(databaseUrl, formId);
    const bare = await bench.program<{ port: number }>('limits/wait.ts');
    const held = await memoryOf({ ...bare, port: bare.ready.port }, sessionIds, openRestWaits);
    report.fact(`${WAITS} requests that wait in bare node:http, memory`, `${held.mib.toFixed(0)} MiB`);
    held.close();
    for (const [way, open] of [['REST', openRestWaits] as const, ['gRPC', openRpcWaits] as const]) {
      // A service that has held waits before keeps some of the memory.
      await reportWaits(report, {
        way,
        service: await bench.service(env),
        sessionIds,
        open,
        seconds: Math.max(MIN_SECONDS, bench.seconds({ warmingUp: false })),
      });
    }
  },
};

/** Times how long waits and a stream of a service take to hear of submits. */
async function openMeter(service: Service, formId: string) {
  const lags = new Map(
    ['REST wait', 'RPC await', 'MCP tool', 'stream'].map((way) => [way, createHistogram()]),
  );
  const streamed = new Map<string, () => void>();
  const gone = new AbortController();
  const stream = await fetch(`http://127.0.0.1:${service.port}/v1/forms/${formId}/submissions/stream`, {
    headers: { authorization: `Bearer ${apiKey}` },
    signal: gone.signal,
  });
  const reading = (async () => {
    let text = '';
    for await (const chunk of stream.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      const blocks = (text + chunk).split('\n\n');
      text = blocks.pop() ?? '';
      for (const block of blocks) streamed.get(/"session_id":"(\w+)"/.exec(block)?.[1] ?? '')?.();
    }
  })().catch(() => undefined);

  /** One session: everybody waits for it, and then it is submitted. */
  async function measureOne(
    submitter: Service,
    rpc: Awaited<ReturnType<typeof openGrpcConnection>>,
    agent: Agent,
  ): Promise<void> {
    const { id } = objectAt(await submitter.call('POST', `/v1/forms/${formId}/sessions`, {}), 'session');
    const sessionId = String(id);
    const ends = {
      'REST wait': service.call('GET', `/v1/sessions/${sessionId}?wait=60`),
      'RPC await': rpc.call(awaitFrame(sessionId)),
      'MCP tool': agent.use('wait_for_session', { session_id: sessionId }).then(requireAnswers),
      stream: new Promise<void>((resolve) => streamed.set(sessionId, resolve)),
    };
    const endedAt = Object.entries(ends).map(async ([way, end]) => {
      await end;
      return [way, performance.now()] as const;
    });
    await sleep(BEFORE_SUBMIT_MS);
    const submittedAt = performance.now();
    await submitter.call('POST', `/v1/sessions/${sessionId}/submit`, { answers: contactAnswers });
    for (const [way, at] of await Promise.all(endedAt)) record(lags.get(way), at - submittedAt);
    streamed.delete(sessionId);
  }

  return {
    async measure(submitter: Service, count: number) {
      let begun = 0;
      const run = async () => {
        const rpc = await openGrpcConnection(service.grpcPort, METHOD, apiKey);
        await using agent = await startAgent({ url: `http://127.0.0.1:${service.port}`, key: apiKey });
        while (begun++ < count) await measureOne(submitter, rpc, agent);
        rpc.close();
      };
      await Promise.all(Array.from({ length: AT_ONCE }, run));
    },
    reset() {
      for (const each of lags.values()) each.reset();
    },
    lags: () => lags,
    async [Symbol.asyncDispose]() {
      gone.abort();
      await reading;
    },
  };
}

const METHOD = '/headlessforms.v1.SessionsService/AwaitSession';

/** Sessions that are measured at the same time. */
const AT_ONCE = 4;

/** An agent has the answers themselves by then. */
function requireAnswers({ facts }: Awaited<ReturnType<Agent['use']>>): void {
  if (facts?.answers === undefined) throw new Error(`No answers in ${JSON.stringify(facts)}`);
}

/** For the waits to begin. */
const BEFORE_SUBMIT_MS = 100;

/** Histograms hold whole numbers from 1 on: microseconds. */
function record(lags: RecordableHistogram | undefined, ms: number): void {
  lags?.record(Math.max(1, Math.round(ms * 1000)));
}

/** Sessions of the shape that the service makes, which stay open. */
async function insertSessions(databaseUrl: string, formId: string): Promise<string[]> {
  const rows = await queryOn(
    databaseUrl,
    `insert into sessions (id, project_id, form_id, version_id, prefill, metadata, created_at, expires_at)
     select 'sess_' || lpad(to_hex(n), 32, '0'), project_id, id, current_version_id, '{}', '{}', now(), now() + interval '1 day'
     from forms, generate_series(1, $2::int) n where id = $1 returning id`,
    [formId, WAITS],
  );
  return rows.map((row) => String(row.id));
}

/** Lets everybody wait, and reports what that holds and costs while nothing happens. */
async function reportWaits(
  report: Report,
  { way, service, sessionIds, open, seconds }: WaitsOptions,
): Promise<void> {
  const { mib, close } = await memoryOf(service, sessionIds, open);
  const waiting = await shareOfCore(service, seconds);
  close();
  await sleep(SETTLE_MS);
  const idle = await shareOfCore(service, seconds);
  report.atMost(`${WAITS} waits by ${way}, memory`, mib, 100, 'MiB');
  report.fact(`the same process after them, of a core`, `${idle.toFixed(2)} %`);
  report.atMost(`${WAITS} waits by ${way}, of a core more than that`, waiting - idle, 0.2, '%');
}

/**
 * The system counts in hundredths of a second: over 20 s that is 0.05 % of a core. The waits go on for 60 s, of which
 * opening them and settling take 25.
 */
const MIN_SECONDS = 20;

/** The share of a core that a process uses, in per cent. */
async function shareOfCore(service: Pick<Service, 'usage'>, seconds: number): Promise<number> {
  const before = service.usage();
  await sleep(seconds * 1000);
  return (service.usage().cpuMicros - before.cpuMicros) / 1e4 / seconds;
}

/** Opens the waits after some others have come and gone, and tells by how much the process grew. */
async function memoryOf<Target extends Pick<Service, 'usage'>>(
  target: Target,
  sessionIds: string[],
  open: (target: Target, sessionIds: string[]) => Promise<() => void>,
): Promise<{ mib: number; close: () => void }> {
  const closeFirst = await open(target, sessionIds.slice(0, WAITS / 10));
  closeFirst();
  await sleep(SETTLE_MS);
  const before = target.usage();
  const close = await open(target, sessionIds);
  await sleep(SETTLE_MS);
  return { mib: target.usage().residentMib - before.residentMib, close };
}

/** For V8 to give back what opening took, well before the waits are over. */
const SETTLE_MS = 20_000;

/** Opens a connection for each wait, some at a time, and returns what closes them. */
async function openRestWaits({ port }: Pick<Service, 'port'>, sessionIds: string[]): Promise<() => void> {
  const opened: { close(): void }[] = [];
  for (let from = 0; from < sessionIds.length; from += OPENED_AT_ONCE) {
    const group = sessionIds.slice(from, from + OPENED_AT_ONCE);
    const connections = await Promise.all(group.map(() => openConnection(port)));
    for (const [index, connection] of connections.entries()) {
      const path = `/v1/sessions/${group[index]}?wait=60`;
      const headers = { authorization: `Bearer ${apiKey}` };
      connection.exchange(requestBytes({ method: 'GET', path, headers })).catch(() => undefined);
    }
    opened.push(...connections);
  }
  return () => {
    for (const connection of opened) connection.close();
  };
}

/** Opens as many waits on each connection as HTTP/2 takes. */
async function openRpcWaits({ grpcPort }: Service, sessionIds: string[]): Promise<() => void> {
  const opened: { close(): void }[] = [];
  for (let from = 0; from < sessionIds.length; from += OPENED_AT_ONCE) {
    const connection = await openGrpcConnection(grpcPort, METHOD, apiKey);
    for (const id of sessionIds.slice(from, from + OPENED_AT_ONCE)) {
      connection.call(awaitFrame(id)).catch(() => undefined);
    }
    opened.push(connection);
  }
  return () => {
    for (const connection of opened) connection.close();
  };
}

/** The streams of one connection. */
const OPENED_AT_ONCE = 100;

function awaitFrame(sessionId: string): Buffer {
  const message = create(AwaitSessionRequestSchema, { sessionId, timeout: { seconds: 60n } });
  return grpcFrame(Buffer.from(toBinary(AwaitSessionRequestSchema, message)));
}

type WaitsOptions = {
  way: string;
  service: Service;
  sessionIds: string[];
  open: (service: Service, sessionIds: string[]) => Promise<() => void>;
  seconds: number;
};
