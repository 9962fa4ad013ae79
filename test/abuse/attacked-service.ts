import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { createServerDatabase, type EngineName, givenEmbeddedDatabase } from '../support/database.ts';
import { endWithRun } from '../support/run-processes.ts';
import { contactForm } from '../support/server.ts';
import { freePort, type SpawnedService, spawnService, temporaryFolder } from '../support/spawn.ts';

/** How long anybody may wait for `/health` while the service is attacked, in milliseconds. */
export const HEALTH_MS = 250;

/** What an attack may add to the memory of the service at rest, in MiB. */
export const MEMORY_MIB = 120;

/**
 * For attacks that are no matter of rates, on a process with little memory: some 70 MiB of it are in use at rest. The
 * more there is, the longer V8 leaves garbage, which is no harm of an attack (with 512 MiB: 20 MiB more).
 */
export const UNLIMITED_RATES = { RATE_LIMIT: 'off', NODE_OPTIONS: '--max-old-space-size=160' };

/**
 * Starts the service as strangers meet it, a process of its own with default settings but for `env`, and
 * gives it what it needs when it works normally: warm code and a form.
 */
export async function startAttackedService(
  engine: EngineName,
  env: Record<string, string> = {},
): Promise<AttackedService & AsyncDisposable> {
  await using opened = new AsyncDisposableStack();
  const folder = opened.use(temporaryFolder());
  const [port, grpcPort] = [await freePort(), await freePort()];
  const dataDir = join(folder.path, 'data');
  if (engine === 'pglite') await givenEmbeddedDatabase(join(dataDir, 'database'));
  const database = engine === 'postgres' ? opened.use(await createServerDatabase()) : undefined;
  const url = `http://127.0.0.1:${port}`;
  const service = opened.use(
    spawnService(
      {
        HOST: '127.0.0.1',
        PORT: String(port),
        GRPC_PORT: String(grpcPort),
        BASE_URL: url,
        DATA_DIR: dataDir,
        SECRET_KEY: 'ab'.repeat(32),
        ...(database !== undefined && { DATABASE_URL: database.databaseUrl }),
        ...env,
      },
      { fromSource: true },
    ),
  );
  const { firstKey } = await service.started();
  if (firstKey === undefined) throw new Error('The service printed no key');
  const started = {
    url,
    grpcUrl: `http://127.0.0.1:${grpcPort}`,
    key: firstKey,
    dataDir,
    databaseUrl: database?.databaseUrl,
    process: service,
  };
  await warmUp(started);
  const formId = await givenForm(started);
  const owned = opened.move();
  return { ...started, formId, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/**
 * The service with these settings that the attacks of this process share, with a form of its own for each
 * caller. It ends with the run: to start and to warm one takes six seconds.
 */
export async function sharedService(
  engine: EngineName,
  env: Record<string, string> = {},
): Promise<AttackedService> {
  const name = JSON.stringify([engine, env]);
  const starting = shared.get(name) ?? startUntilExit(engine, env);
  shared.set(name, starting);
  const service = await starting;
  return { ...service, formId: await givenForm(service) };
}

const shared = new Map<string, Promise<AttackedService>>();

/** Vitest kills the processes of tests, so that the end of the run has to find theirs. */
async function startUntilExit(engine: EngineName, env: Record<string, string>): Promise<AttackedService> {
  const service = await startAttackedService(engine, env);
  endWithRun(service.process.child.pid);
  return service;
}

/** Attacks the service, and tells what others felt of it from the first byte until a second after the last. */
export async function harmDone(service: AttackedService, attack: () => Promise<unknown>): Promise<Harm> {
  const { url, process } = service;
  const { pid } = process.child;
  const prober = new Worker(new URL('./health-thread.ts', import.meta.url), { workerData: { url, pid } });
  await once(prober, 'message');
  const memory = watchMemory(pid);
  try {
    await attack();
  } finally {
    prober.postMessage('end');
  }
  const [{ slowestHealthMs, slowness }] = (await once(prober, 'message')) as [
    { slowestHealthMs: number; slowness: number },
  ];
  const harm = { slowestHealthMs, addedMib: memory.addedMib() };
  console.log(
    `/health in ${Math.round(slowestHealthMs)} ms on a machine ${slowness.toFixed(2)} times as slow as the bound is for, ` +
      `${Math.round(harm.addedMib)} MiB more`,
  );
  return harm;
}

/** A published form made with the key, owned by owner@example.com, delivered by mail. */
export async function givenForm(
  { url, key }: Pick<AttackedService, 'url' | 'key'>,
  definition: object = {},
): Promise<string> {
  const created = await post(`${url}/api/forms/create`, { ...contactForm, ...definition }, key);
  const { form } = created as { form: { id: string; activate_url: string } };
  await post(new URL(form.activate_url, url).href, { email: 'owner@example.com' });
  return form.id;
}

/** On a form of its own that is deleted after, so that no mails of it are on their way during an attack. */
async function warmUp(service: Pick<AttackedService, 'url' | 'key'>): Promise<void> {
  const { url, key } = service;
  const formId = await givenForm(service);
  const answers = { email: 'ada@example.com', message: 'x'.repeat(1_000) };
  for (let round = 0; round < 12; round += 1) {
    const submit = () => post(`${url}/v1/forms/${formId}/submissions`, { answers }, key);
    await Promise.all(Array.from({ length: 40 }, submit));
  }
  await post(`${url}/v1/forms/${formId}/archive`, {}, key);
  const authorized = { headers: { authorization: `Bearer ${key}` } };
  await fetch(`${url}/v1/forms/${formId}`, { method: 'DELETE', ...authorized });
}

/** Posts JSON and gives the reply's JSON; fails on any status but 2xx. */
async function post(url: string, body: object, key?: string): Promise<unknown> {
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(key !== undefined && { authorization: `Bearer ${key}` }),
    },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${await response.text()}`);
  return response.json();
}

/** Lets the kernel note the peak of a process's resident memory from now on. */
export function watchMemory(pid: number | undefined): { addedMib(): number } {
  writeFileSync(`/proc/${pid}/clear_refs`, '5');
  const atRest = memoryMib(pid, 'VmRSS');
  return { addedMib: () => memoryMib(pid, 'VmHWM') - atRest };
}

function memoryMib(pid: number | undefined, figure: 'VmRSS' | 'VmHWM'): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(new RegExp(`^${figure}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1]) / 1_024;
}

export type AttackedService = {
  url: string;
  grpcUrl: string;
  /** A `*` key of the default project. */
  key: string;
  /** A published form made with that key. */
  formId: string;
  dataDir: string;
  /** The database of a service on PostgreSQL. */
  databaseUrl: string | undefined;
  process: SpawnedService;
};

export type Harm = {
  /** The longest that `/health` took, in milliseconds (see health-thread.ts). */
  slowestHealthMs: number;
  /** The peak of resident memory during the attack, less what it was before, in MiB. */
  addedMib: number;
};
