import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * What costs most in the CPU profiles of a folder: functions by their own share of the busy time, in the
 * second half of each process's life, when it no longer starts.
 */
export function hottest(folder: string): string {
  const files = readdirSync(folder).filter((file) => file.endsWith('.cpuprofile'));
  return files.map((file) => `${file}\n${linesOf(join(folder, file)).join('\n')}`).join('\n\n');
}

/** Enough to see where the time goes. */
const LINES = 40;

function linesOf(file: string): string[] {
  const { nodes, samples, timeDeltas }: Profile = JSON.parse(readFileSync(file, 'utf8'));
  const frames = new Map(nodes.map(({ id, callFrame }) => [id, nameOf(callFrame)]));
  const own = new Map<string, number>();
  const half = Math.floor(samples.length / 2);
  for (const [index, id] of samples.entries()) {
    if (index < half) continue;
    const name = frames.get(id) ?? '';
    if (name.startsWith('(idle)') || name.startsWith('(program)')) continue;
    own.set(name, (own.get(name) ?? 0) + (timeDeltas[index] ?? 0));
  }
  const busy = [...own.values()].reduce((sum, micros) => sum + micros, 0);
  return [...own]
    .toSorted(([, one], [, other]) => other - one)
    .slice(0, LINES)
    .map(([name, micros]) => `${((100 * micros) / busy).toFixed(1).padStart(5)} %  ${name}`);
}

function nameOf({ functionName, url, lineNumber }: Frame): string {
  const place = url.replace(/^.*\/(?=(src|gen|node_modules)\/)/, '');
  return `${functionName || '(anonymous)'} ${place}:${lineNumber + 1}`;
}

type Frame = { functionName: string; url: string; lineNumber: number };
type Profile = { nodes: { id: number; callFrame: Frame }[]; samples: number[]; timeDeltas: number[] };
