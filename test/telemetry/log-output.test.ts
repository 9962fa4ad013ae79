import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { freePort, type SpawnedService, spawnService, temporaryFolder } from '../support/spawn.ts';
import { until } from '../support/until.ts';

describe('a log', () => {
  it.each(['json', 'pretty'])(
    'of a file that takes no more stops nothing, and says in %s what it lost',
    async (format) => {
      using folder = temporaryFolder();
      const path = join(folder.path, 'log');
      const file = openSync(path, 'a');
      // A write beyond the longest file that the process may make fails as one to a full disk does.
      truncateSync(path, 200 * MIB);
      await using service = await givenService(
        folder.path,
        { LOG_FORMAT: format },
        { after: 'ulimit -f 100000', stderr: file },
      );
      closeSync(file);

      const ready = await until(async () => {
        const answer = await service.get('/ready');
        return answer.log === 'dropping' && answer;
      });
      const answers = await Promise.all(Array.from({ length: 20 }, () => service.get('/health')));
      const dropped = await service.dropped();
      truncateSync(path, 0);
      await until(async () => (await service.get('/ready')).log === 'written');
      const text = readFileSync(path, 'utf8');
      const stopped = await service.stop();

      expect(ready).toEqual({ status: 200, ok: true, database: 'up', disk: 'enough', log: 'dropping' });
      expect(answers).toEqual(answers.map(() => ({ status: 200, ok: true })));
      expect(dropped).toBeGreaterThan(0);
      expect(text).toContain('Lines of the log were dropped: it could not be written.');
      expect(
        Number(/dropped"?: (\d+)|dropped":(\d+)/.exec(text)?.slice(1).find(Boolean)),
      ).toBeGreaterThanOrEqual(dropped);
      expect(stopped).toMatchObject({ code: 0 });
      expect(readFileSync(path, 'utf8')).toContain('Stopping');
    },
  );

  it('of a pipe that nobody reads stops nothing, and goes on once it is read', async () => {
    using folder = temporaryFolder();
    await using service = await givenService(folder.path, {}, { stderr: 'unread' });

    await until(async () => {
      await Promise.all(Array.from({ length: 100 }, () => service.get('/health')));
      return (await service.get('/ready')).log === 'dropping';
    });
    const stuck = await service.get('/ready');
    let text = '';
    service.child.stderr?.setEncoding('utf8').on('data', (part: string) => (text += part));
    await until(async () => (await service.get('/ready')).log === 'written');
    await until(() => text.includes('Lines of the log were dropped'));

    expect(stuck).toMatchObject({ status: 200, ok: true });
    expect(await service.stop()).toMatchObject({ code: 0 });
  });

  it('of a pipe that nobody reads does not hold up a stop', async () => {
    using folder = temporaryFolder();
    await using service = await givenService(folder.path, {}, { stderr: 'unread' });

    await until(async () => {
      await Promise.all(Array.from({ length: 100 }, () => service.get('/health')));
      return (await service.get('/ready')).log === 'dropping';
    });
    service.child.kill('SIGTERM');
    await until(() => service.child.exitCode !== null);

    expect(service.child.exitCode).toBe(0);
  });

  it('of a pipe whose reader has gone stops nothing', async () => {
    using folder = temporaryFolder();
    await using service = await givenService(folder.path, {}, { stderr: 'unread' });

    service.child.stderr?.destroy();

    await until(async () => (await service.get('/ready')).log === 'dropping');
    const before = await service.dropped();
    await until(async () => {
      await service.get('/health');
      return (await service.dropped()) > before;
    });
    expect(await service.get('/health')).toEqual({ status: 200, ok: true });
    expect(await service.stop()).toMatchObject({ code: 0 });
  });

  it('counts each line once, also where its level leaves out the report', async () => {
    const source = `
      import { LogOutput } from ${JSON.stringify(join(import.meta.dirname, '../../src/telemetry/log-output.ts'))};
      const write = process.stderr.write.bind(process.stderr);
      let tries = 0;
      process.stderr.write = (...given) => {
        tries += 1;
        return write(...given);
      };
      process.stdin.once('data', () => {
        const output = new LogOutput(() => undefined);
        for (const line of ['a', 'b', 'c']) output.write(line);
        setInterval(() => {
          if (tries < 4) return;
          process.stdout.write(String(output.dropped));
          process.exit();
        }, 10);
      });`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', source]);
    child.stderr.destroy();
    await once(child.stderr, 'close');
    child.stdin.end('begin');

    expect(await text(child.stdout)).toBe('3');
  });
});

const MIB = 1024 ** 2;

/** A running service of its own, which logs health checks too, and what asks it. */
async function givenService(
  folder: string,
  env: Record<string, string>,
  options: Parameters<typeof spawnService>[1],
) {
  const ports = {
    PORT: String(await freePort()),
    GRPC_PORT: String(await freePort()),
    METRICS_PORT: String(await freePort()),
  };
  const service: SpawnedService = spawnService(
    { DATA_DIR: join(folder, 'data'), LOG_LEVEL: 'debug', ...ports, ...env },
    options,
  );
  await service.started();
  return {
    ...service,
    async get(path: string) {
      const answer = await fetch(`http://127.0.0.1:${ports.PORT}${path}`);
      return { status: answer.status, ...((await answer.json()) as { log?: string }) };
    },
    async dropped() {
      const answer = await fetch(`http://127.0.0.1:${ports.METRICS_PORT}/metrics`);
      return Number(/^forms_log_lines_dropped_total (\d+)$/m.exec(await answer.text())?.[1]);
    },
  };
}
