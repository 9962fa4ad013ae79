import { rateOf, type Sample } from './rounds.ts';

/** Collects what a row found, and says each thing as it comes. */
export function startReport(row: string, say: (line: string) => void): Report {
  const samples: NamedSample[] = [];
  const findings: Finding[] = [];
  const find = (finding: Omit<Finding, 'row'>) => {
    findings.push({ row, ...finding });
    const verdict = finding.reached === undefined ? '' : finding.reached ? '  reached' : '  NOT REACHED';
    say(
      `  ${finding.what}: ${finding.measured}${finding.target === '' ? '' : ` (${finding.target})`}${verdict}`,
    );
  };
  return {
    samples,
    findings,
    sample(name, sample) {
      samples.push({ row, name, sample });
      say(`  ${name}: ${describe(sample)}`);
    },
    atLeast: (what, value, least, unit = '') =>
      find({
        what,
        measured: shown(value, unit),
        target: `≥ ${shown(least, unit)}`,
        reached: value >= least,
      }),
    atMost: (what, value, most, unit = '') =>
      find({ what, measured: shown(value, unit), target: `≤ ${shown(most, unit)}`, reached: value <= most }),
    fact: (what, measured) => find({ what, measured, target: '', reached: undefined }),
  };
}

/** A number with as many digits as it deserves. */
export function shown(value: number, unit = ''): string {
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  const text = value.toLocaleString('en', { maximumFractionDigits: digits });
  return unit === '' ? text : `${text} ${unit}`;
}

function describe(sample: Sample): string {
  const { p50Ms, p99Ms, cpuMicros, residentMib, errors, statuses } = sample;
  const failed = errors === 0 ? ', 0 errors' : `, ${errors} ERRORS: ${namesOf(statuses)}`;
  return (
    `${shown(rateOf(sample))}/s, p50 ${shown(p50Ms)} ms, p99 ${shown(p99Ms)} ms, ` +
    `${shown(cpuMicros)} µs CPU, ${shown(residentMib)} MiB${failed}`
  );
}

function namesOf(statuses: Sample['statuses']): string {
  return Object.entries(statuses)
    .map(([name, { count }]) => `${count} × ${name}`)
    .join(', ');
}

export type NamedSample = { row: string; name: string; sample: Sample };

/** `reached` is undefined where nothing was to be reached. */
export type Finding = {
  row: string;
  what: string;
  measured: string;
  target: string;
  reached: boolean | undefined;
};

export type Report = {
  samples: NamedSample[];
  findings: Finding[];
  /** A contestant's typical round. */
  sample(name: string, sample: Sample): void;
  /** A figure that should be `least` or more. */
  atLeast(what: string, value: number, least: number, unit?: string): void;
  /** A figure that should be `most` or less. */
  atMost(what: string, value: number, most: number, unit?: string): void;
  /** A figure without a target. */
  fact: (what: string, measured: string) => void;
};
