import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** A file to write a report in JSON to. */
const report = process.env.TEST_REPORT;

/** Files run in the order of this number, so that what depends on an order shows: `TEST_SEED=3 npm test`. */
const seed = process.env.TEST_SEED;

/** What takes minutes has a folder and a script of its own, `npm run test:abuse` and so on, beside `npm test`. */
const slow = ['abuse', 'citus', 'clients', 'failover', 'fuzz', 'kills', 'network'];

/** Vitest begins with the largest files where it knows no durations. These are small, take minutes, and would end last. */
const longest = ['test/services/rights.test.ts', 'test/days.test.ts'];

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isLongest = ({ moduleId }: TestSpecification) => longest.some((file) => moduleId.endsWith(file));
    const sorted = await super.sort(files);
    return [...sorted.filter(isLongest), ...sorted.filter((file) => !isLongest(file))];
  }
}

export default defineConfig(({ mode }) => ({
  test: {
    include: [slow.includes(mode) ? `test/${mode}/*.test.ts` : 'test/**/*.test.ts'],
    exclude: slow.includes(mode) ? [] : slow.map((name) => `test/${name}/**`),
    globalSetup: ['test/support/global-setup.ts'],
    // Processes, not threads: tests kill and signal, and each embedded database wants a heap of its own.
    pool: 'forks',
    // The files that run in one process share what is slow to start: sources, databases, the browser.
    isolate: false,
    sequence:
      seed === undefined
        ? { sequencer: LongestFirst }
        : { shuffle: { files: true, tests: false }, seed: Number(seed) },
    // One more than two cores can run: some tests wait for clocks and for other processes.
    // Those that bound time and memory, crash what others wait for, or change the network, have the machine to themselves.
    maxWorkers: ['abuse', 'failover', 'network'].includes(mode) ? 1 : 3,
    // Only what hangs takes as long: on a busy machine a start of the service takes twenty seconds.
    testTimeout: 240_000,
    hookTimeout: 240_000,
    expect: { poll: { timeout: 30_000 } },
    ...(report !== undefined && { reporters: ['default', 'json'], outputFile: { json: report } }),
  },
}));
