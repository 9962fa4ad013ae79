import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DayRun, runDay } from '../run-day.ts';
import { pathOfSubmission } from '../submission-path.ts';
import type { Finding } from '../world/types.ts';
import { type Bug, bugs } from './bugs.ts';
import { plant } from './planted-source.ts';

/**
 * Plants each bug and lets days pass until one of its rules finds it: of one seed after the other, without crashes and
 * then with them. Says by which seed and rule, and runs that seed again: its trace must be the same, byte by byte.
 *
 * `dump` is a file that holds a migrated database. `only` is a part of the names of the bugs that are tried. Returns
 * whether all were found and replayed.
 */
export async function findBugs({ only = '', say, ...given }: BugHunt): Promise<boolean> {
  const wanted = bugs.filter(({ name }) => name.includes(only));
  const folder = await mkdtemp(join(tmpdir(), 'days-bugs-'));
  try {
    await using clean = await plant([]);
    const baseline = cachedRuns(await sourceAt(clean.folder, folder, given.dump), {
      ...given,
      folder,
      name: 'clean',
    });
    let isEachFound = true;
    for (const bug of wanted) {
      const found = await findBug(bug, { ...given, folder, baseline });
      isEachFound &&= found?.isReplayed === true;
      say(
        found === undefined
          ? `NOT FOUND in ${SEEDS} seeds: ${bug.name}`
          : `${bug.name}: seed ${found.seed}${found.crashes > 0 ? `, ${found.crashes} crashes` : ''}: ` +
              `${found.finding.rule}: ${found.finding.reason} ` +
              `(${found.isReplayed ? 'replayed byte by byte' : 'NOT THE SAME when replayed'})`,
      );
    }
    return isEachFound;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function findBug(bug: Bug, { baseline, isExpected, ...hunt }: Hunt): Promise<Found | undefined> {
  await using planted = await plant(bug.edits);
  const source = await sourceAt(planted.folder, hunt.folder, hunt.dump);
  const runs = cachedRuns(source, { ...hunt, name: 'bug' });
  for (let seed = 1; seed <= SEEDS; seed++) {
    for (const crashes of [0, CRASHES]) {
      const run = await runs(seed, crashes);
      const suspects = run.findings.filter(({ rule }) => bug.rules.includes(rule));
      if (suspects.length === 0) continue;
      const finding =
        suspects.find((each) => !isExpected(each)) ??
        (await findMore(suspects, () => baseline(seed, crashes)));
      if (finding === undefined) continue;
      const again = await source.runDay(hunt.folder, run.request, 'again');
      const [first, second] = await Promise.all([readFile(run.trace), readFile(again.trace)]);
      return { seed, crashes, finding, isReplayed: first.equals(second) };
    }
  }
  return undefined;
}

/** What the service does itself today counts as found if there is more of it than without the bug. */
async function findMore(suspects: Finding[], baseline: () => Promise<DayRun>): Promise<Finding | undefined> {
  const { findings } = await baseline();
  return suspects.find((each) => countOf(each, suspects) > countOf(each, findings));
}

function countOf({ rule, reason }: Finding, findings: readonly Finding[]): number {
  return findings.filter((each) => each.rule === rule && each.reason === reason).length;
}

/** Runs the days of a source once for each seed and number of crashes. What crashes where is drawn from a dry run. */
function cachedRuns({ runDay, path }: Source, { dump, folder, name }: RunOptions): Runs {
  const known = new Map<string, Promise<PlantedRun>>();
  const run: Runs = (seed, crashes) => {
    const key = `${seed}-${crashes}`;
    const before = known.get(key);
    if (before !== undefined) return before;
    const running = (async () => {
      const crashing = crashes === 0 ? {} : { places: (await run(seed, 0)).places, path };
      const request = { seed, hours: HOURS, crashes, isJumping: true, dump, ...crashing };
      return { ...(await runDay(folder, request, `${name}-${key}`)), request };
    })();
    known.set(key, running);
    return running;
  };
  return run;
}

/** A bug changes statements, so that each source has its own way of a submission. */
async function sourceAt(root: string, folder: string, dump: string): Promise<Source> {
  const { runDay }: typeof import('../run-day.ts') = await import(join(root, 'test/days/run-day.ts'));
  return { runDay, path: await pathOfSubmission(runDay, folder, dump) };
}

const SEEDS = 50;
const HOURS = 24;
const CRASHES = 8;

type BugHunt = {
  dump: string;
  only?: string;
  /** Whether the service itself has such a finding today. */
  isExpected: (finding: Finding) => boolean;
  say: (line: string) => void;
};
type Hunt = Pick<BugHunt, 'dump' | 'isExpected'> & { folder: string; baseline: Runs };
type RunOptions = { dump: string; folder: string; name: string };
/** The days of a source, and the statements between a submission and its deliveries, at which processes die above all. */
type Source = { runDay: typeof runDay; path: string[] };
type Runs = (seed: number, crashes: number) => Promise<PlantedRun>;
type Request = Parameters<typeof runDay>[1];
type PlantedRun = DayRun & { request: Request };
type Found = { seed: number; crashes: number; finding: Finding; isReplayed: boolean };
