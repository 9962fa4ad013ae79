import { setTimeout as sleep } from 'node:timers/promises';
import { type Process, startProcess } from '../support/processes.ts';
import { startReceiver } from '../support/receiver.ts';
import { temporaryFolder } from '../support/spawn.ts';

/** Starts two instances of the service on a database, and a published form whose webhook goes to a receiver. */
export async function startInstances(
  owned: AsyncDisposableStack,
  databaseUrl: string,
  env: Record<string, string> = {},
): Promise<Instances> {
  const receiver = owned.use(await startReceiver());
  const folder = owned.use(temporaryFolder());
  const start = (index: number) =>
    startProcess(owned, {
      dataDir: `${folder.path}/${index}`,
      databaseUrl,
      key: KEY,
      env: { WEBHOOK_ALLOW_PRIVATE: 'true', RATE_LIMIT: 'off', LOG_LEVEL: 'fatal', ...env },
    });
  const processes = [await start(0), await start(1)];
  const first = processes[0];
  if (first === undefined) throw new Error('There is no instance.');
  const made = await call(first, '/api/forms/create', formDelivered(receiver.url));
  const { form } = (await madeBy(made)) as { form: { id: string; activate_url: string } };
  const { pathname, search } = new URL(form.activate_url, first.url);
  await madeBy(await call(first, `${pathname}${search}`, { email: 'owner@example.com' }));
  return {
    formId: form.id,
    processes,
    received: () => new Set(receiver.received.map(({ body }) => String(JSON.parse(body).data.submissionId))),
    async crash(index) {
      await processes[index]?.service.stop('SIGKILL');
      processes[index] = await start(index);
    },
  };
}

/**
 * Submits by so many writers, each to one instance after the other, until it is stopped. Each submission has an
 * idempotency key and is tried until it is acknowledged.
 */
export function startWriters({ formId, processes }: Instances, count: number): Writers {
  const acknowledged: Acknowledged[] = [];
  const stopping = new AbortController();
  const write = async (writer: number) => {
    for (let turn = 0; !stopping.signal.aborted; turn += 1) {
      const key = `${writer}-${turn}`;
      for (let attempt = turn; ; attempt += 1) {
        const id = await submit(processes[attempt % processes.length], formId, key);
        if (id !== undefined) acknowledged.push({ key, id, at: performance.now() });
        if (id !== undefined || stopping.signal.aborted) break;
        await sleep(50);
      }
    }
  };
  const running = Promise.all(Array.from({ length: count }, (_, writer) => write(writer)));
  return {
    acknowledged,
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

/** The longest time between two acknowledgements, in seconds. */
export function longestSilence(acknowledged: readonly Acknowledged[]): number {
  const times = acknowledged.map(({ at }) => at).sort((left, right) => left - right);
  const gaps = times.slice(1).map((at, index) => at - (times[index] ?? at));
  return Math.max(0, ...gaps) / 1_000;
}

const KEY = `hfs_${'f'.repeat(43)}`;

async function submit(
  instance: Process | undefined,
  formId: string,
  key: string,
): Promise<string | undefined> {
  if (instance === undefined) return undefined;
  const answers = { email: 'ada@example.com' };
  try {
    const response = await call(
      instance,
      `/api/forms/${formId}/submissions`,
      { answers },
      { 'idempotency-key': key },
    );
    const { submission_id: id } = (await response.json()) as { submission_id?: string };
    return response.status === 201 ? id : undefined;
  } catch {
    // The instance was killed under the call, which therefore was not acknowledged.
    return undefined;
  }
}

async function madeBy(response: Response): Promise<unknown> {
  if (!response.ok) throw new Error(`${response.url} answered ${response.status}: ${await response.text()}`);
  return response.json();
}

function call(
  { url }: Process,
  path: string,
  body: object,
  headers: Record<string, string> = {},
): Promise<Response> {
  return fetch(url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(30_000),
  });
}

function formDelivered(url: string): object {
  return {
    name: 'Contact',
    slug: 'contact',
    fields: [{ id: 'email', type: 'email', required: true }],
    delivery: { type: 'webhook', url },
  };
}

export type Instances = {
  formId: string;
  processes: Process[];
  /** The ids of the submissions whose webhooks have arrived. */
  received(): ReadonlySet<string>;
  /** Kills an instance and starts it again. */
  crash(index: number): Promise<void>;
};

export type Writers = { acknowledged: readonly Acknowledged[]; stop(): Promise<void> };

/** A submission by its idempotency key and its id. `at` is when the answer came, by `performance.now()`. */
export type Acknowledged = { key: string; id: string; at: number };
