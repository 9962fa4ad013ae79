import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import manifest from '../../package.json' with { type: 'json' };
import type { Form } from './form.ts';
import { endProcess, peakMibOf, type Usage, usageOf } from './process.ts';

/** A `*` key, which the services started here know. */
export const apiKey = 'hfs_bench_0123456789abcdefghijklmnop';

/**
 * Starts the service as `npm start` does, on free ports, and waits until it answers.
 *
 * Limits are off and receivers on loopback allowed; `env` adds settings. With `profileDir`, the CPU
 * profile of the whole life of the process is written there when it ends.
 */
export async function startService({ env, dataDir, profileDir }: ServiceOptions): Promise<Service> {
  const [port, grpcPort] = [await freePort(), await freePort()];
  const profiling = profileDir === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profileDir}`];
  const child = spawn(process.execPath, [...profiling, ...asByNpm], {
    env: serviceEnv({ port, grpcPort, dataDir, env }),
    cwd: root,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  await untilHealthy(port, child);
  const url = `http://127.0.0.1:${port}`;
  const call = (method: string, path: string, body?: unknown) => callJson(`${url}${path}`, method, body);

  return {
    port,
    grpcPort,
    call,
    usage: () => usageOf(child.pid ?? 0),
    peakMib: () => peakMibOf(child.pid ?? 0),
    async publish(form) {
      const created = await call('POST', '/api/forms/create', form);
      const { id, activate_url } = objectAt(created, 'form');
      const activated = await call('POST', String(activate_url), { email: 'owner@example.com' });
      const { current_version_id } = objectAt(activated, 'form');
      return { formId: String(id), versionId: String(current_version_id) };
    },
    [Symbol.asyncDispose]: () => endProcess(child),
  };
}

/** The environment of a service under measurement. */
export function serviceEnv({ port, grpcPort, dataDir, env }: EnvOptions): NodeJS.ProcessEnv {
  return {
    PATH: process.env.PATH,
    PORT: String(port),
    GRPC_PORT: String(grpcPort),
    HOST: '127.0.0.1',
    DATA_DIR: dataDir,
    SECRET_KEY: '00'.repeat(32),
    BOOTSTRAP_API_KEY: apiKey,
    RATE_LIMIT: 'off',
    WEBHOOK_ALLOW_PRIVATE: 'true',
    LOG_LEVEL: 'warn',
    // As by default, but on a free port.
    METRICS_PORT: '0',
    ...env,
  };
}

/** A port that nobody listens on at this moment. */
export async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const address = probe.address();
  probe.close();
  await once(probe, 'close');
  if (address === null || typeof address === 'string') throw new Error('No port');
  return address.port;
}

/** Waits until `/health` answers 200. Throws if the process ends before. */
export async function untilHealthy(port: number, child: ChildProcess): Promise<void> {
  while (child.exitCode === null) {
    const health = await fetch(`http://127.0.0.1:${port}/health`).catch(() => undefined);
    await health?.arrayBuffer();
    if (health?.status === 200) return;
    await sleep(5);
  }
  throw new Error(`The service ended with ${child.exitCode} while it started.`);
}

const root = join(import.meta.dirname, '../..');
const asByNpm = manifest.scripts.start.split(' ').slice(1);

/** Calls the service with the `*` key. Throws on any status that is not a success. */
async function callJson(url: string, method: string, body: unknown): Promise<Record<string, unknown>> {
  const response = await fetch(url, {
    method,
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${url}: ${response.status} ${text}`);
  return JSON.parse(text);
}

/** The object under a name of a reply. */
export function objectAt(reply: Record<string, unknown>, name: string): Record<string, unknown> {
  const value = reply[name];
  if (typeof value !== 'object' || value === null) throw new Error(`No ${name} in ${JSON.stringify(reply)}`);
  return { ...value };
}

type EnvOptions = { port: number; grpcPort: number; dataDir: string; env: NodeJS.ProcessEnv };

export type ServiceOptions = { dataDir: string; env: NodeJS.ProcessEnv; profileDir?: string | undefined };

export type Service = AsyncDisposable & {
  port: number;
  grpcPort: number;
  usage(): Usage;
  /** The most memory that its process has held since it began. */
  peakMib(): number;
  /** Calls a REST route with a `*` key and returns the reply's JSON. */
  call(method: string, path: string, body?: unknown): Promise<Record<string, unknown>>;
  /** Creates and activates a form. */
  publish(form: Form): Promise<{ formId: string; versionId: string }>;
};
