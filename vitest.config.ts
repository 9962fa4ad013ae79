import { defineConfig } from 'vitest/config';

/** A file to write a report in JSON to. */
const report = process.env.TEST_REPORT;

/** Hostile input by the thousand, and kill after kill, take minutes: `npm run test:attacks` runs these alone. */
const attacks = 'test/attacks/**';

export default defineConfig(({ mode }) => ({
  test: {
    include: [mode === 'attacks' ? `${attacks}/*.test.ts` : 'test/**/*.test.ts'],
    exclude: mode === 'attacks' ? [] : [attacks],
    globalSetup: ['test/support/global-setup.ts'],
    // Processes, not threads: tests kill and signal, and each embedded database wants a heap of its own.
    pool: 'forks',
    // The files that run in one process share what is slow to start: sources, databases, the browser.
    isolate: false,
    // One more than two cores can run: some tests wait for clocks and for other processes.
    maxWorkers: 3,
    testTimeout: 30_000,
    hookTimeout: 60_000,
    ...(report !== undefined && { reporters: ['default', 'json'], outputFile: { json: report } }),
  },
}));
