import { readFileSync } from 'node:fs';
import type { runDay } from './run-day.ts';

/**
 * The statements that run between a submission and the end of its deliveries, and not while nothing happens. `run` is
 * the `runDay` of the source that is asked about, `folder` is for its files, `dump` a file that holds a migrated
 * database.
 */
export async function pathOfSubmission(run: typeof runDay, folder: string, dump: string): Promise<string[]> {
  const { trace } = await run(
    folder,
    { seed: 1, hours: 1, crashes: 0, isJumping: false, isRehearsal: true, actors: 'one', dump },
    'path',
  );
  const lines = readFileSync(trace, 'utf8').split('\n');
  const begin = lines.findIndex((line) => line.includes(' submit to '));
  const end = lines.findLastIndex((line) => /^\S+ (webhook|mail) /.test(line));
  if (begin === -1 || end < begin) throw new Error('The submission was not delivered');
  const secondsOf = (line: string) => Number(line.split(' ', 1)[0]);
  const until = secondsOf(lines[end] ?? '') + 2;
  const statementOf = (line: string) => /^\S+ statement \d+ (.*)$/.exec(line)?.[1];
  const idle = new Set(
    lines.filter((line) => secondsOf(line) > until + 60 && secondsOf(line) < until + 180).map(statementOf),
  );
  const busy = lines
    .slice(begin)
    .filter((line) => secondsOf(line) <= until)
    .map(statementOf);
  return [...new Set(busy)].filter((each) => each !== undefined).filter((each) => !idle.has(each));
}
