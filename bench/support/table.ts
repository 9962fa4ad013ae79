import { cpus, release, totalmem } from 'node:os';
import { type Finding, type NamedSample, shown } from './report.ts';
import { rateOf } from './rounds.ts';

/**
 * The page of results: what was to be reached and was or was not, what each row runs beside what, and every
 * contestant's figures. `run` is the command with its date.
 */
export function resultsPage(
  run: string,
  rows: { name: string; what: string }[],
  findings: Finding[],
  samples: NamedSample[],
): string {
  return `# Results

Made by ${run}: ${machine()}. The load generator, the receivers and PostgreSQL run on the same machine. Ratios are medians over rounds in which service and limit take turns.

${table(
  ['row', 'what', 'measured', 'to reach', ''],
  findings.map(({ row, what, measured, target, reached }) => [
    row,
    what,
    measured,
    target,
    reached === undefined ? '' : reached ? 'yes' : '**no**',
  ]),
)}

## Rows

What each row measures, and what runs beside it.

${table(
  ['row', 'what'],
  rows.map(({ name, what }) => [name, what]),
)}

## Figures

CPU is that of the program's own processes for each unit; memory is what they hold at the end. Any error
makes a run invalid.

${table(
  ['row', 'program', 'per second', 'p50 ms', 'p99 ms', 'CPU µs', 'MiB', 'errors'],
  samples.map(({ row, name, sample }) => [
    row,
    name,
    shown(rateOf(sample)),
    shown(sample.p50Ms),
    shown(sample.p99Ms),
    shown(sample.cpuMicros),
    shown(sample.residentMib),
    shown(sample.errors),
  ]),
)}
`;
}

function table(head: string[], rows: string[][]): string {
  const line = (cells: string[]) => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

function machine(): string {
  const [cpu] = cpus();
  const memory = Math.round(totalmem() / 2 ** 30);
  return `${cpus().length} cores (${cpu?.model}), ${memory} GiB, Linux ${release()}, Node ${process.versions.node}`;
}
