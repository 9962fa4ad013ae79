import type { Load } from './load.ts';
import type { Usage } from './process.ts';

/**
 * Lets the contestants take turns, `rounds` times after a short turn each to warm up: the machine's own
 * speed swings, so that only neighbouring turns can be compared. Any error makes the run invalid.
 */
export async function takeTurns<Name extends string>(
  rounds: number,
  contestants: Record<Name, Contestant>,
): Promise<Turns<Name>> {
  const names: Name[] = [];
  for (const name in contestants) names.push(name);
  const samples = new Map<Name, Sample[]>(names.map((name) => [name, []]));
  const answered = new Map<Name, number>();
  for (const name of names) answered.set(name, (await contestants[name]({ warmingUp: true })).units);
  for (let round = 0; round < rounds; round++) {
    for (const name of names) {
      const sample = await contestants[name]({ warmingUp: false });
      samples.get(name)?.push(sample);
      answered.set(name, (answered.get(name) ?? 0) + sample.units);
    }
  }

  const of = (name: Name) => samples.get(name) ?? [];
  return {
    samples: of,
    answered: (name) => answered.get(name) ?? 0,
    typical: (name) => typicalOf(of(name)),
    ratio: (one, other, figure = rateOf) => {
      const others = of(other);
      return median(of(one).map((sample, round) => figure(sample) / figure(others[round] ?? sample)));
    },
  };
}

/** Runs a load and adds what the process under it used meanwhile. */
export async function sampled(program: { usage(): Usage }, run: () => Promise<Load>): Promise<Sample> {
  const before = program.usage();
  const load = await run();
  const after = program.usage();
  return {
    ...load,
    cpuMicros: (after.cpuMicros - before.cpuMicros) / Math.max(1, load.units),
    residentMib: after.residentMib,
  };
}

/** Units a second. */
export function rateOf({ units, seconds }: Load): number {
  return units / seconds;
}

export function median(values: number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  const middle = Math.floor(sorted.length / 2);
  const [low, high] = [sorted[middle - 1] ?? Number.NaN, sorted[middle] ?? Number.NaN];
  return sorted.length % 2 === 1 ? high : (low + high) / 2;
}

/** The median of each figure; errors are added up. */
function typicalOf(samples: Sample[]): Sample {
  const of = (figure: (sample: Sample) => number) => median(samples.map(figure));
  const rate = of(rateOf);
  return {
    units: rate,
    seconds: 1,
    p50Ms: of(({ p50Ms }) => p50Ms),
    p99Ms: of(({ p99Ms }) => p99Ms),
    maxMs: of(({ maxMs }) => maxMs),
    cpuMicros: of(({ cpuMicros }) => cpuMicros),
    residentMib: of(({ residentMib }) => residentMib),
    errors: samples.reduce((sum, { errors }) => sum + errors, 0),
    statuses: Object.assign({}, ...samples.map(({ statuses }) => statuses)),
  };
}

/** `cpuMicros` is for each unit, of all the program's processes; `residentMib` is at the end. */
export type Sample = Load & Usage;

/** Takes a turn: a load of the usual length, or a shorter one. */
export type Contestant = (turn: Turn) => Promise<Sample>;

export type Turn = { warmingUp: boolean };

export type Turns<Name extends string> = {
  samples(name: Name): Sample[];
  /** The units of all turns, the warming up too. */
  answered(name: Name): number;
  /** The medians of a contestant's rounds. */
  typical(name: Name): Sample;
  /** The median over the rounds of one's figure to the other's; the rate if no figure is named. */
  ratio(one: Name, other: Name, figure?: (sample: Sample) => number): number;
};
