import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createServerDatabase } from './support/database.ts';
import { metricIn } from './support/metrics.ts';
import { freePort, spawnService, temporaryFolder } from './support/spawn.ts';
import { until } from './support/until.ts';

describe('several workers', () => {
  it('share the port, print one block, replace one that dies, and end together', async () => {
    using folder = temporaryFolder();
    await using server = await createServerDatabase();
    const metricsPort = await freePort();
    const env = {
      ...(await settings(folder.path, server.databaseUrl)),
      METRICS_PORT: String(metricsPort),
    };
    await using service = spawnService(env);
    const { output, firstKey } = await service.started();
    const startedAt = performance.now();
    const workers = () => childrenOf(service.child.pid ?? 0);
    const two = await until(() => workers().length === 2 && workers());

    // The metrics tell the second in which a process started: the next one is to start in another.
    await until(() => performance.now() - startedAt > 1_100);
    process.kill(Number(two[0]), 'SIGKILL');
    await until(() => workers().length === 2 && !workers().includes(two[0] ?? ''));
    const headers = { authorization: `Bearer ${firstKey}` };
    const forms = await until(() =>
      fetch(`http://127.0.0.1:${env.PORT}/v1/forms`, { headers }).catch(() => undefined),
    );
    const starts = await Promise.all([metricsPort, metricsPort + 1].map(startAt));
    const ended = await service.stop();

    expect(starts).toEqual([expect.any(Number), expect.any(Number)]);
    expect(starts[0]).not.toBe(starts[1]);
    expect(forms.status).toBe(200);
    expect(ended.code).toBe(0);
    expect(ended.output).toBe(output);
    expect(ended.errors).toContain('another one replaces it');
  });

  it('end at once when none of them is there just now', async () => {
    using folder = temporaryFolder();
    await using server = await createServerDatabase();
    const env = await settings(folder.path, server.databaseUrl);
    await using service = spawnService(env);
    await service.started();
    const pid = service.child.pid ?? 0;
    const two = await until(() => childrenOf(pid).length === 2 && childrenOf(pid));

    for (const worker of two) process.kill(Number(worker), 'SIGKILL');
    await until(() => childrenOf(pid).length === 0);
    const ended = await service.stop();

    expect(ended.code).toBe(0);
  });

  it('tell why none can start, once', async () => {
    using folder = temporaryFolder();
    const env = await settings(folder.path, `postgres://127.0.0.1:${await freePort()}/forms`);
    await using service = spawnService({ ...env, START_WAIT: '0' });

    const ended = await service.ended;

    expect(ended.code).toBe(1);
    expect(ended.errors.trim().split('\n')).toEqual([expect.stringMatching(/database/i)]);
  });
});

async function settings(folder: string, databaseUrl: string) {
  const [port, grpcPort] = await Promise.all([freePort(), freePort()]);
  return {
    WORKERS: '2',
    PORT: String(port),
    GRPC_PORT: String(grpcPort),
    HOST: '127.0.0.1',
    DATA_DIR: join(folder, 'data'),
    DATABASE_URL: databaseUrl,
    SECRET_KEY: 'ab'.repeat(32),
    LOG_LEVEL: 'error',
  };
}

/** The processes that a process has started and that live, by their ids. */
function childrenOf(pid: number): string[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean);
}

/** The process whose metrics are on a port, by its own start: processes start one after the other. */
async function startAt(port: number): Promise<number> {
  const text = await until(() =>
    fetch(`http://127.0.0.1:${port}/metrics`)
      .then((response) => response.text())
      .catch(() => undefined),
  );
  return metricIn(text, 'process_start_time_seconds') ?? Number.NaN;
}
