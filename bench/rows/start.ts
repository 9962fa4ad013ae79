import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Bench, Row } from '../support/bench.ts';
import { endGroup } from '../support/process.ts';
import { median, type Sample, takeTurns } from '../support/rounds.ts';
import { freePort, serviceEnv, untilHealthy } from '../support/service.ts';

export const start: Row = {
  name: 'start',
  what: '`npm start` to /health on a database with tables, and on a new embedded one, beside `node -e 0`',
  async run(bench, report) {
    const DATABASE_URL = await bench.databases.create();
    const turns = await takeTurns(bench.rounds, {
      server: () => started(bench, { DATABASE_URL }, ['npm', 'start']),
      embedded: () => started(bench, {}, ['npm', 'start']),
      withoutNpm: () => started(bench, { DATABASE_URL }, [process.execPath, 'src/main.ts']),
      node: () => nothing(),
    });
    const more = (name: 'server' | 'embedded' | 'withoutNpm') =>
      median(
        turns
          .samples(name)
          .map((sample, round) => sample.seconds - (turns.samples('node')[round]?.seconds ?? 0)),
      );
    report.atMost('npm start on a database with tables, more than node -e 0', more('server'), 1, 's');
    report.atMost('npm start on a new embedded one, more than node -e 0', more('embedded'), 4, 's');
    report.fact(
      'node src/main.ts on a database with tables, more than node -e 0',
      `${more('withoutNpm').toFixed(2)} s`,
    );
  },
};

const root = join(import.meta.dirname, '../..');

/** Starts the service in a process group of its own, since npm starts further processes. */
async function started(
  bench: Bench,
  env: NodeJS.ProcessEnv,
  [program = '', ...args]: string[],
): Promise<Sample> {
  const [port, grpcPort] = [await freePort(), await freePort()];
  const began = performance.now();
  const child = spawn(program, args, {
    cwd: root,
    env: { ...serviceEnv({ port, grpcPort, dataDir: bench.folder(), env }), HOME: process.env.HOME },
    stdio: 'ignore',
    detached: true,
  });
  await untilHealthy(port, child);
  const tookMs = performance.now() - began;
  await endGroup(child);
  return oneStart(tookMs);
}

async function nothing(): Promise<Sample> {
  const began = performance.now();
  await once(spawn(process.execPath, ['-e', '0'], { stdio: 'ignore' }), 'exit');
  return oneStart(performance.now() - began);
}

function oneStart(tookMs: number): Sample {
  const latency = { p50Ms: tookMs, p99Ms: tookMs, maxMs: tookMs };
  return {
    units: 1,
    errors: 0,
    seconds: tookMs / 1000,
    ...latency,
    statuses: {},
    cpuMicros: 0,
    residentMib: 0,
  };
}
