import { readFileSync, writeFileSync } from 'node:fs';
import type { DayRequest, DayResult } from './run-day.ts';
import { seedRandomness } from './world/random.ts';
import { installScheduler } from './world/scheduler.ts';

// Before all that is imported below, which takes the clock and the timers that it finds.
const request: DayRequest = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8'));
const scheduler = installScheduler(Date.UTC(2026, 0, 5, 8));
seedRandomness(`seed ${request.seed}`);

const { live } = await import('./world/day.ts');
const actors = request.actors === 'one' ? import('./world/one-actor.ts') : import('./actors/index.ts');
const { act } = await actors;
const { findLosses } = await import('./ledger/index.ts');

const { seed, hours, crashes, places, path = [], isJumping, isRehearsal = false } = request;
const { findings, observed, trace, passed, days } = await live(scheduler, {
  seed,
  hours,
  crashes,
  ...(places !== undefined && { places }),
  path,
  isJumping,
  isRehearsal,
  dump: new Blob([new Uint8Array(readFileSync(request.dump))]),
  act,
  findLosses,
});
const result: DayResult = {
  findings,
  places: [...passed].sort(),
  days,
  operations: observed.filter(({ kind }) => kind === 'call').length,
  submissions: observed.filter((each) => each.kind === 'reply' && each.request.operation.startsWith('submit'))
    .length,
  crashes: observed.flatMap((each) => (each.kind === 'crash' ? [each.place] : [])),
  lastEvents: trace.lastEvents(50, findings.find(({ at }) => at !== undefined)?.at),
};
writeFileSync(request.trace, trace.text());
writeFileSync(request.result, JSON.stringify(result));
process.exit(0);
