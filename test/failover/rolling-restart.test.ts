import { createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { fetch } from 'undici';
import { expect, it } from 'vitest';
import { FormsService } from '../../gen/headlessforms/v1/forms_pb.js';
import { createServerDatabase } from '../support/database.ts';
import { runOn } from '../support/postgres.ts';
import { type Process, startProcess } from '../support/processes.ts';
import { freePort, temporaryFolder } from '../support/spawn.ts';
import { until } from '../support/until.ts';
import { accepts, type StartedProxy, startProxy } from './proxies.ts';

const KEY = `hfs_${'r'.repeat(43)}`;
/** All in all; `TEST_REQUESTS=3000` where other tests run beside it. */
const REQUESTS = Number(process.env.TEST_REQUESTS ?? 10_000);
const CALLERS = 16;
/** Longer than two checks of the proxy; 0 shows what this test is about. */
const DRAIN_SECONDS = process.env.TEST_DRAIN_SECONDS ?? '3';

it('fails no request while both instances are replaced, one after the other, by REST and by gRPC', {
  timeout: 360_000,
}, async () => {
  await using owned = new AsyncDisposableStack();
  const { databaseUrl } = owned.use(await createServerDatabase());
  const folder = owned.use(temporaryFolder()).path;
  const port = await freePort();
  const env = {
    TRUST_PROXY: '1',
    BASE_URL: `https://localhost:${port}`,
    RATE_LIMIT: 'off',
    LOG_LEVEL: 'error',
    DRAIN_SECONDS,
  };
  const start = (index: number, ports?: Record<string, string>) =>
    startProcess(owned, { dataDir: `${folder}/${index}`, databaseUrl, key: KEY, env: { ...env, ...ports } });
  const instances = [await start(0), await start(1)];
  const [statsPort, rpcPort] = [await freePort(), await freePort()];
  // Without further attempts, what an instance refuses is a failed request.
  const edit = (config: string) =>
    `${config.replace('option redispatch', 'retries 0')}
frontend cleartext
  bind 127.0.0.1:${rpcPort} proto h2
  default_backend grpc
listen stats
  bind 127.0.0.1:${statsPort}
  stats enable
  stats uri /
`;
  const proxy = await startProxy(owned, 'haproxy', { port, instances, edit });
  // It begins to listen on one port after the other.
  await until(() => accepts(statsPort), 15_000, proxy.output);
  await until(() => allAreUp(statsPort), 15_000, proxy.output);
  const load = startLoad(proxy, rpcPort, await givenForm(instances[0]));

  for (const [index, instance] of instances.entries()) {
    await load.goesOn();
    const { code, errors } = await instance.service.stop('SIGTERM');
    expect({ code, errors }).toEqual({ code: 0, errors: '' });
    const ports = { PORT: new URL(instance.url).port, GRPC_PORT: new URL(instance.grpcUrl).port };
    instances[index] = await start(index, ports);
    await until(() => allAreUp(statsPort), 15_000, proxy.output);
  }
  await load.goesOn(REQUESTS);
  const { requests, failures, accepted, longestMs } = await load.stop();

  const [stored] = await runOn(databaseUrl, 'select count(*)::int as count from submissions');
  console.log(
    `${requests} requests while both instances were replaced, ${failures.length} failed; the longest took ${longestMs} ms`,
  );
  expect(failures).toEqual([]);
  expect(requests).toBeGreaterThanOrEqual(REQUESTS);
  expect(stored).toEqual({ count: accepted });
});

/** Calls by REST and by gRPC until it is stopped, each caller one call after the other. */
function startLoad({ url, agentFrom }: StartedProxy, rpcPort: number, formId: string) {
  const done = { requests: 0, accepted: 0, longestMs: 0, failures: [] as string[] };
  const dispatcher = agentFrom('127.0.0.1');
  const headers = { authorization: `Bearer ${KEY}` };
  const forms = createClient(FormsService, createGrpcTransport({ baseUrl: `http://127.0.0.1:${rpcPort}` }));
  const json = { 'content-type': 'application/json' };
  const body = JSON.stringify({ answers: { email: 'ada@example.com' } });

  const submit = async () => {
    const to = `${url}/api/forms/${formId}/submissions`;
    const reply = await fetch(to, { method: 'POST', dispatcher, headers: json, body });
    if (reply.status !== 201) throw new Error(`${reply.status} ${await reply.text()}`);
    await reply.arrayBuffer();
    done.accepted += 1;
  };
  const read = async () => {
    const reply = await fetch(`${url}/v1/forms/${formId}`, { dispatcher, headers });
    if (reply.status !== 200) throw new Error(`${reply.status} ${await reply.text()}`);
    await reply.arrayBuffer();
  };
  const readByGrpc = async () => void (await forms.getForm({ formId }, { headers }));

  let isStopping = false;
  const callInTurns = async (first: number) => {
    const kinds = [submit, read, readByGrpc];
    for (let turn = first; !isStopping; turn += 1) {
      const begin = performance.now();
      const kind = kinds[turn % kinds.length] ?? submit;
      await kind().catch((error: unknown) => done.failures.push(`${kind.name}: ${describe(error)}`));
      done.requests += 1;
      done.longestMs = Math.max(done.longestMs, Math.round(performance.now() - begin));
    }
  };
  const running = Promise.all(Array.from({ length: CALLERS }, (_, caller) => callInTurns(caller)));
  return {
    /** Waits until there were 500 more requests, and so many in all. */
    async goesOn(inAll = 0) {
      const enough = Math.max(done.requests + 500, inAll);
      const state = () => `${done.requests} requests; ${done.failures.slice(0, 3).join('; ')}`;
      await until(() => done.requests >= enough, 240_000, state);
    },
    async stop() {
      isStopping = true;
      await running;
      return done;
    },
  };
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
}

async function givenForm(instance: Process | undefined): Promise<string> {
  const post = async (path: string, body: object) => {
    const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' };
    const reply = await fetch(`${instance?.url}${path}`, {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
    });
    if (!reply.ok) throw new Error(`${path}: ${reply.status} ${await reply.text()}`);
    return (await reply.json()) as { form: { id: string; activate_url: string } };
  };
  const { form } = await post('/api/forms/create', {
    name: 'Contact',
    slug: 'contact',
    fields: [{ id: 'email', type: 'email' }],
    delivery: { type: 'email' },
  });
  await post(form.activate_url, { email: 'owner@example.com' });
  return form.id;
}

/** Whether HAProxy has every server of every backend in use. */
async function allAreUp(statsPort: number): Promise<boolean> {
  const csv = await (await fetch(`http://127.0.0.1:${statsPort}/;csv`)).text();
  const servers = csv
    .split('\n')
    .map((line) => line.split(','))
    .filter(([, name = '']) => ['one', 'two'].includes(name));
  return servers.length === 4 && servers.every((columns) => columns[17] === 'UP');
}
