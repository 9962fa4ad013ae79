import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { Finding } from './world/types.ts';

/** Runs the days of one seed in a process of its own. */
export async function runDay(
  folder: string,
  options: Omit<DayRequest, 'trace' | 'result'>,
  name: string,
): Promise<DayRun> {
  const trace = join(folder, `${name}.trace`);
  const result = join(folder, `${name}.json`);
  const request = join(folder, `${name}.request`);
  writeFileSync(request, JSON.stringify({ ...options, trace, result }));
  const child = spawn(
    process.execPath,
    ['--max-semi-space-size=16', join(import.meta.dirname, 'day-process.ts'), request],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  );
  const exited = once(child, 'exit');
  const [said, failed] = await Promise.all([text(child.stdout), text(child.stderr)]);
  const [code] = await exited;
  if (code !== 0) return brokenOff(name, trace, `${said}${failed}`.slice(-4_000));
  return { ...(JSON.parse(readFileSync(result, 'utf8')) as DayResult), name, trace };
}

/** Nothing that happens may end a process by itself. */
function brokenOff(name: string, trace: string, detail: string): DayRun {
  writeFileSync(trace, '');
  const findings = [{ rule: 'the days go on', reason: 'the process ended', detail }];
  const none = { places: [], days: 0, operations: 0, submissions: 0, crashes: [], lastEvents: [] };
  return { findings, ...none, name, trace };
}

export type DayRequest = {
  seed: number;
  /** `one`: somebody who submits once; absent: `all`. */
  actors?: 'all' | 'one';
  /** How many simulated hours people act for. */
  hours: number;
  crashes: number;
  /** Where a dry run of the seed passed; absent: nothing crashes. */
  places?: string[];
  /** Statements of which half of the places are drawn. */
  path?: string[];
  isJumping: boolean;
  /** Ends when people have acted: nothing is judged. */
  isRehearsal?: boolean;
  /** A file: the dump of a migrated database. */
  dump: string;
  /** Files to write. */
  trace: string;
  result: string;
};

export type DayResult = {
  findings: Finding[];
  /** Where processes passed. */
  places: string[];
  /** Simulated. */
  days: number;
  /** Calls of the service. */
  operations: number;
  submissions: number;
  /** The place of each. */
  crashes: string[];
  lastEvents: string[];
};

export type DayRun = DayResult & { name: string; trace: string };
