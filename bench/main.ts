import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { rows } from './rows/index.ts';
import { openBench } from './support/bench.ts';
import { startDatabases } from './support/postgres.ts';
import { hottest } from './support/profile.ts';
import { type Report, startReport } from './support/report.ts';
import { resultsPage } from './support/table.ts';

const usage = `npm run bench                    runs every row and writes bench/RESULTS.md
npm run bench -- NAME...         runs rows: ${rows.map(({ name }) => name).join(' ')}
  --rounds N    turns of each contestant (3)
  --seconds N   length of a turn (10)
  --scale X     multiplies counts of rows and events (1); smaller for a quick look
  --profile DIR writes CPU profiles of the service there, and prints what costs most
`;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '10' },
    scale: { type: 'string', default: '1' },
    profile: { type: 'string' },
    help: { type: 'boolean', short: 'h' },
  },
});
const chosen = rows.filter(({ name }) => positionals.length === 0 || positionals.includes(name));
const unknown = positionals.filter((name) => !rows.some((row) => row.name === name));
if (values.help === true || unknown.length > 0) {
  process.stderr.write(usage);
  process.exit(1);
}
await using everything = new AsyncDisposableStack();
for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.once(signal, () => {
    // What is under way fails when the ground is taken away from under it.
    process.on('uncaughtException', () => undefined);
    void everything.disposeAsync().finally(() => process.exit(1));
  });
}
process.exitCode = await run();

/** Runs the chosen rows; 1 if a call failed in any of them, since that makes its figures worthless. */
async function run(): Promise<number> {
  const options = {
    rounds: Number(values.rounds),
    seconds: Number(values.seconds),
    scale: Number(values.scale),
    profileDir: values.profile,
  };
  if (options.profileDir !== undefined) mkdirSync(options.profileDir, { recursive: true });
  const databases = everything.use(await startDatabases());
  const reports: Report[] = [];
  for (const row of chosen) {
    say(`\n${row.name}: ${row.what}`);
    await using bench = openBench(options, databases);
    everything.use(bench);
    const report = startReport(row.name, say);
    reports.push(report);
    await row.run(bench, report);
  }

  if (options.profileDir !== undefined) say(`\n${hottest(options.profileDir)}`);
  const samples = reports.flatMap((report) => report.samples);
  const findings = reports.flatMap((report) => report.findings);
  if (positionals.length === 0 && options.scale >= 1) {
    const today = new Date().toISOString().slice(0, 10);
    const run = `\`npm run bench -- --rounds ${options.rounds} --seconds ${options.seconds}\` on ${today}`;
    writeFileSync(join(import.meta.dirname, 'RESULTS.md'), resultsPage(run, chosen, findings, samples));
  }
  const errors = samples.reduce((sum, { sample }) => sum + sample.errors, 0);
  if (errors > 0) say(`\nINVALID: ${errors} errors.`);
  return errors > 0 ? 1 : 0;
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
