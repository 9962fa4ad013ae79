import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { openPglite } from '../../src/store/database/pglite.ts';
import { findBugs } from './bugs/hunt.ts';
import { type Expected, expectedFindings } from './expected-findings.ts';
import { type DayRun, runDay } from './run-day.ts';
import { pathOfSubmission } from './submission-path.ts';
import type { Finding } from './world/types.ts';

/*
 * Simulated days of the whole service: `npm run test:days`. In the environment: SEEDS (how many), FIRST_SEED, or one
 * SEED to run again, whose trace is kept; DAYS of acting; TWICE=1 also runs the first seed again and compares; BRIEF=1
 * runs neither the expected findings' seeds nor the hour that is not jumped over.
 *
 * `npm run test:days -- --bugs` plants bugs instead, and says by which seed and rule each is found; BUG is a part of the
 * names of those that are tried.
 */

/** Of acting; as many that are half quiet follow. */
const DEFAULT_DAYS = 10;
const CRASHES = 6;
/** Of the days, what is run without crashes before, for the places where processes may die. */
const DRY_SHARE = 0.3;
/** So many seeds let processes die at every statement between a submission and its deliveries. */
const LONG_RUN = 100;

const seed = numberIn('SEED', Number.NaN);
const first = numberIn('FIRST_SEED', 1);
const days = numberIn('DAYS', DEFAULT_DAYS);
const isReplay = !Number.isNaN(seed);
const isBugHunt = process.argv.includes('--bugs');
const isBrief = isReplay || process.env.BRIEF === '1';
const chosen = isReplay ? [seed] : Array.from({ length: numberIn('SEEDS', 20) }, (_, at) => first + at);
const seeds = [...new Set([...chosen, ...(isBrief ? [] : expectedFindings.map((each) => each.seed))])];

const folder = mkdtempSync(join(tmpdir(), 'forms-days-'));
const problems: string[] = [];
const startedAt = Date.now();
try {
  const dump = await makeDump(join(folder, 'empty.tar'));
  if (isBugHunt) await huntBugs(dump);
  else await runSeeds(dump, await pathOfSubmission(runDay, folder, dump));
} finally {
  rmSync(folder, { recursive: true, force: true });
}
for (const problem of problems) console.log(`\nFAILED ${problem}`);
process.exitCode = problems.length === 0 ? 0 : 1;

async function huntBugs(dump: string): Promise<void> {
  const only = process.env.BUG ?? '';
  const isEachFound = await findBugs({ dump, only, isExpected, say: (line) => console.log(line) });
  if (!isEachFound) problems.push('not every planted bug was found and replayed');
}

async function runSeeds(dump: string, path: string[]): Promise<void> {
  const runs = new Map<string, DayRun>();
  const jobs = seeds.map(
    (each) => async () => void runs.set(`seed ${each}`, await runSeed(each, dump, path)),
  );
  if (process.env.TWICE === '1' && seeds[0] !== undefined) {
    const [once] = seeds;
    jobs.push(async () => void runs.set('again', await runSeed(once, dump, path, '-again')));
  }
  if (!isBrief) jobs.push(async () => void runs.set('hour', await runHour(dump)));
  await inParallel(jobs, Math.min(2, availableParallelism()));
  compareTraces(runs.get(`seed ${seeds[0]}`), runs.get('again'));
  judge(runs);
  if (seeds.length >= LONG_RUN) requireCrashesAt(path, [...runs.values()]);
  summarize([...runs.values()], path);
  if (isReplay) console.log(`Trace: ${keepTrace(runs.get(`seed ${seed}`))}`);
}

/** The places where processes die are drawn from those that a shorter run without crashes has passed. */
async function runSeed(each: number, dump: string, path: string[], suffix = ''): Promise<DayRun> {
  const options = { seed: each, isJumping: true, dump };
  const dry = await runDay(
    folder,
    { ...options, isRehearsal: true, hours: days * 24 * DRY_SHARE, crashes: 0 },
    `${each}-dry${suffix}`,
  );
  const crashing = { hours: days * 24, crashes: CRASHES, places: dry.places, path };
  return runDay(folder, { ...options, ...crashing }, `${each}${suffix}`);
}

/** An hour in which time passes from one timer to the next. */
function runHour(dump: string): Promise<DayRun> {
  return runDay(folder, { seed: first, hours: 1, crashes: 0, isJumping: false, dump }, 'hour');
}

function judge(runs: Map<string, DayRun>): void {
  for (const [name, { findings, lastEvents }] of runs) {
    const others = findings.filter((found) => !isExpected(found));
    if (others.length === 0) continue;
    const shown = others.map(({ rule, reason, detail }) => `  ${rule}: ${reason} (${detail})`);
    problems.push(
      `${name}\n${shown.join('\n')}\nThe last events:\n${lastEvents.join('\n')}\nRun it again: ${commandOf(name)}`,
    );
  }
  for (const expected of expectedFindings) {
    const run = runs.get(`seed ${expected.seed}`);
    if (
      run !== undefined &&
      days === DEFAULT_DAYS &&
      !run.findings.some((found) => isSame(found, expected))
    ) {
      problems.push(
        `seed ${expected.seed} no longer finds: ${expected.rule}: ${expected.reason}. Take it from the expected findings.`,
      );
    }
  }
}

function isExpected(found: Finding): boolean {
  return expectedFindings.some((each) => isSame(found, each));
}

function isSame(found: Finding, { rule, reason }: Expected): boolean {
  return found.rule === rule && found.reason === reason;
}

function commandOf(name: string): string {
  const which = name.startsWith('seed ') ? `SEED=${name.slice(5)}` : `FIRST_SEED=${first} SEEDS=1`;
  return `${which}${days === DEFAULT_DAYS ? '' : ` DAYS=${days}`} npm run test:days`;
}

function compareTraces(one: DayRun | undefined, other: DayRun | undefined): void {
  if (one === undefined || other === undefined) return;
  const [lines, again] = [one, other].map(({ trace }) => readFileSync(trace, 'utf8').split('\n'));
  const at = lines?.findIndex((line, index) => line !== again?.[index]) ?? -1;
  if (at === -1 && lines?.length === again?.length) return;
  problems.push(
    `a seed that was run twice differs from line ${at + 1} on:\n  ${lines?.[at]}\n  ${again?.[at]}`,
  );
}

/** A run as long as this leaves no statement of a submission's way out. */
function requireCrashesAt(path: string[], runs: DayRun[]): void {
  const crashed = new Set(runs.flatMap(({ crashes }) => crashes));
  for (const statement of path) {
    if (!crashed.has(`before ${statement}`) && !crashed.has(`after ${statement}`)) {
      problems.push(`no process died before or after: ${statement}`);
    }
  }
}

function summarize(runs: DayRun[], path: string[]): void {
  const sum = (of: (run: DayRun) => number) => runs.reduce((total, run) => total + of(run), 0);
  const places = new Map<string, number>();
  for (const place of runs.flatMap(({ crashes }) => crashes)) places.set(place, (places.get(place) ?? 0) + 1);
  const found = new Map<string, Set<string>>();
  for (const run of runs) {
    for (const { rule, reason } of run.findings) {
      const name = `${rule}: ${reason}`;
      found.set(name, (found.get(name) ?? new Set()).add(run.name));
    }
  }
  for (const [place, count] of [...places].sort(([, a], [, b]) => b - a)) {
    console.log(`${String(count).padStart(4)} crashes ${place.slice(0, 140)}`);
  }
  const died = new Set([...places.keys()].map((place) => place.replace(/^(before|after) /, '')));
  console.log(
    `${seeds.length} seeds from ${seeds[0]}, ${Math.round(sum((run) => run.days))} simulated days, ` +
      `${sum((run) => run.operations)} operations, ${sum((run) => run.submissions)} submissions, ` +
      `${sum((run) => run.crashes.length)} crashes at ${places.size} places ` +
      `(${path.filter((each) => died.has(each)).length} of the ${path.length} statements of a submission's way), ` +
      `${found.size} losses found, ${Math.round((Date.now() - startedAt) / 1000)} s`,
  );
  for (const [name, where] of found) console.log(`  ${name} (in ${[...where].slice(0, 8).join(', ')})`);
}

function keepTrace(run: DayRun | undefined): string {
  const file = join(tmpdir(), `days-${seed}.trace`);
  if (run !== undefined) writeFileSync(file, readFileSync(run.trace));
  return file;
}

async function makeDump(file: string): Promise<string> {
  const engine = await openPglite({ log: console });
  await engine.migrate();
  writeFileSync(file, Buffer.from(await (await engine.dump()).arrayBuffer()));
  await engine.close();
  return file;
}

async function inParallel(jobs: (() => Promise<void>)[], workers: number): Promise<void> {
  const left = [...jobs];
  const work = async () => {
    for (let job = left.shift(); job !== undefined; job = left.shift()) await job();
  };
  await Promise.all(Array.from({ length: workers }, work));
}

function numberIn(variable: string, standard: number): number {
  const text = process.env[variable];
  const number = text === undefined || text === '' ? standard : Number(text);
  if (text && !Number.isInteger(number)) throw new Error(`${variable}: expected a whole number`);
  return number;
}
