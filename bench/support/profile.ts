import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * What costs most in the CPU profiles of a folder, once the process has started: functions and places
 * (rooms of the source, packages, parts of Node) by their own share of the busy time.
 */
export function hottest(folder: string): string {
  const files = readdirSync(folder).filter((file) => file.endsWith('.cpuprofile'));
  return files.map((file) => `${file}\n${summaryOf(join(folder, file))}`).join('\n\n');
}

/** Loading the modules, which is not what is measured, is over by then. */
const STARTUP_MICROS = 5_000_000;

/** Enough to see where the time goes. */
const LINES = 30;

function summaryOf(file: string): string {
  const { nodes, samples, timeDeltas }: Profile = JSON.parse(readFileSync(file, 'utf8'));
  const frames = new Map(nodes.map(({ id, callFrame }) => [id, callFrame]));
  const functions = new Map<string, number>();
  const places = new Map<string, number>();
  let elapsed = 0;
  let busy = 0;
  for (const [index, id] of samples.entries()) {
    const micros = timeDeltas[index] ?? 0;
    elapsed += micros;
    const frame = frames.get(id);
    if (frame === undefined || elapsed < STARTUP_MICROS || frame.functionName === '(idle)') continue;
    busy += micros;
    add(functions, nameOf(frame), micros);
    add(places, placeOf(frame), micros);
  }
  const top = (shares: Map<string, number>) =>
    [...shares]
      .toSorted(([, one], [, other]) => other - one)
      .slice(0, LINES)
      .map(([name, micros]) => `${((100 * micros) / busy).toFixed(1).padStart(5)} %  ${name}`)
      .join('\n');
  return `${(busy / 1e6).toFixed(1)} s busy\n${top(places)}\n\n${top(functions)}`;
}

function add(shares: Map<string, number>, name: string, micros: number): void {
  shares.set(name, (shares.get(name) ?? 0) + micros);
}

function nameOf({ functionName, url, lineNumber }: Frame): string {
  const place = url.replace(/^.*\/(?=(src|gen|node_modules)\/)/, '');
  return `${functionName || '(anonymous)'} ${place}:${lineNumber + 1}`;
}

/** `src/gateway`, `node_modules/express`, `node:_http_outgoing`; V8's own work has a name for a place. */
function placeOf({ functionName, url }: Frame): string {
  if (url === '') return functionName.startsWith('(') ? functionName : '(native)';
  return /(?:src|gen)\/[\w-]+|node_modules\/(?:@[^/]+\/)?[^/]+|node:[\w/]+/.exec(url)?.[0] ?? url;
}

type Frame = { functionName: string; url: string; lineNumber: number };
type Profile = { nodes: { id: number; callFrame: Frame }[]; samples: number[]; timeDeltas: number[] };
