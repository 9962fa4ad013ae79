import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hammer } from './load.ts';
import type { Databases } from './postgres.ts';
import { type Program, startProgram, type Usage } from './process.ts';
import type { Report } from './report.ts';
import { type Contestant, sampled, type Turn } from './rounds.ts';
import { type Service, startService } from './service.ts';

/**
 * What one row works with: it starts services, programs and databases, and all of them end with it.
 */
export function openBench(options: BenchOptions, databases: Databases): Bench {
  const started = new AsyncDisposableStack();
  const seconds = (turn: Turn) =>
    turn.warmingUp ? Math.min(WARM_UP_SECONDS, options.seconds) : options.seconds;
  const folder = () =>
    started.adopt(mkdtempSync(join(tmpdir(), 'forms-bench-')), (path) =>
      rmSync(path, { recursive: true, force: true }),
    );
  return {
    rounds: options.rounds,
    scaled: (count) => Math.max(1, Math.round(count * options.scale)),
    databases,
    folder,
    service: async (env) =>
      started.use(await startService({ dataDir: folder(), env, profileDir: options.profileDir })),
    program: async (file, input = {}) => started.use(await startProgram(file, input)),
    hammered: (target, call) => (turn) =>
      sampled(target, () => hammer({ connections: 64, ...call, port: target.port, seconds: seconds(turn) })),
    seconds,
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}

/** V8 has compiled what is hot by then. */
const WARM_UP_SECONDS = 3;

export type BenchOptions = {
  rounds: number;
  /** The length of a turn. */
  seconds: number;
  /** Counts are multiplied by it: below 1 for a quick look, whose figures mean little. */
  scale: number;
  /** Where CPU profiles of the services go. */
  profileDir?: string | undefined;
};

export type Bench = AsyncDisposable & {
  rounds: number;
  /** How long a turn takes: shorter while warming up. */
  seconds(turn: Turn): number;
  /** A count of rows or events, scaled. */
  scaled(count: number): number;
  databases: Databases;
  /** Makes a temporary folder. */
  folder(): string;
  /** Starts a service with these settings: `DATABASE_URL`, or none for the embedded database. */
  service(env: NodeJS.ProcessEnv): Promise<Service>;
  /** Starts a program of this folder, such as `limits/accept.ts`. */
  program<Ready>(file: string, input?: object): Promise<Program<Ready>>;
  /** A contestant whose turn is to answer 64 connections, or as many as `connections` says. */
  hammered(target: Target, call: Call): Contestant;
};

/** A program that listens. */
export type Target = { port: number; usage: () => Usage };

/** `request` makes the bytes of the next request; `expect` is the status it should get. */
export type Call = { request: () => Buffer; expect: number; connections?: number; count?: number };

/** One line of the table of rows. */
export type Row = {
  name: string;
  /** What is measured, beside what. */
  what: string;
  run(bench: Bench, report: Report): Promise<void>;
};
