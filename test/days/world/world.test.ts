import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { openFiles } from '../../../src/store/embedded/files.ts';
import { CrashPlan } from './crash-plan.ts';
import { databaseOf, type Process } from './database.ts';
import { fingerprintOf } from './fingerprint.ts';
import { createRandom } from './random.ts';
import { Scheduler } from './scheduler.ts';
import { connectPair, isNetworkQuiet, ownEnd } from './socket.ts';
import { createStatements } from './statements.ts';

describe('the time of simulated days', () => {
  it('passes from one timer to the next, however they were set', async () => {
    const scheduler = new Scheduler(0);
    const fired: [string, number][] = [];
    const note = (name: string) => () => void fired.push([name, scheduler.now]);
    scheduler.start(note('late'), 3_600_000, false);
    scheduler.start(note('interval'), 1_500_000, true);
    scheduler.start(note('soon'), 1, false);

    await scheduler.run(new Promise<void>((resolve) => scheduler.start(resolve, 4_000_000, false)));

    expect(fired).toEqual([
      ['soon', 1],
      ['interval', 1_500_000],
      ['interval', 3_000_000],
      ['late', 3_600_000],
    ]);
  });

  it('does not pass while a file is read', async () => {
    const scheduler = new Scheduler(0);
    let reading: Promise<Buffer> | undefined;
    const read = () => {
      reading = readFile(process.execPath);
    };
    scheduler.start(read, 5, false);

    const run = scheduler.run(new Promise<void>((resolve) => scheduler.start(resolve, 10, false)));

    await expect(run).rejects.toThrow(/^Time would pass while a FSReq/);
    expect(scheduler.now).toBe(5);
    await reading;
  });

  it('is jumped over up to what is somebody’s own, intervals of minutes included', async () => {
    const scheduler = new Scheduler(0);
    let seconds = 0;
    let minutes = 0;
    const jumps: number[] = [];
    scheduler.start(() => (seconds += 1), 1_000, true);
    scheduler.start(() => (minutes += 1), 60_000, true);
    scheduler.idleUntil = async () => scheduler.now + 10_000_000;
    scheduler.onJump = () => {
      jumps.push(scheduler.now);
      return false;
    };

    await scheduler.run(new Promise<void>((resolve) => scheduler.start(resolve, 3_000_500, false, true)));

    expect({ seconds, minutes, jumps }).toEqual({ seconds: 1, minutes: 0, jumps: [3_000_500] });
  });
});

it('the network of simulated days is quiet once all that was written has arrived', async () => {
  const [near, far] = connectPair({ near: ownEnd('10.0.0.1'), far: ownEnd('10.0.0.2'), latency: () => 5 });

  near.end('Some words');

  expect(isNetworkQuiet()).toBe(false);
  expect(await text(far)).toBe('Some words');
  expect(isNetworkQuiet()).toBe(true);
});

describe('a process of simulated days', () => {
  it('that dies before a commit leaves nothing of the transaction, and nobody waiting', async () => {
    const pglite = await openFiles({ place: undefined, dump: undefined });
    await pglite.exec('create table notes (text text)');
    const [first, second] = [newProcess(), newProcess()];
    const passed: string[] = [];
    const options = { statements: createStatements(pglite), delay: () => 0, log: console };
    const dying = await databaseOf(first.process, pglite, {
      ...options,
      onStatement(when, fingerprint) {
        passed.push(`${when} ${fingerprint}`);
        if (fingerprint.startsWith('commit')) first.die();
      },
    });
    const living = await databaseOf(second.process, pglite, { ...options, onStatement: () => undefined });
    let isAnswered = false;

    const stored = dying.transaction((tx) => tx.execute('insert into notes values ($1)', ['lost']));
    const answered = () => {
      isAnswered = true;
    };
    stored.then(answered, answered);
    await expect.poll(() => first.process.isDead).toBe(true);

    expect(await living.select('select text from notes')).toEqual([]);
    expect(passed).toEqual([
      'before insert into notes values ($)',
      'after insert into notes values ($)',
      'before commit of: insert into notes values ($)',
    ]);
    expect(isAnswered).toBe(false);
    await pglite.close();
  });

  it('dies where its plan says, once, and from its time on', () => {
    let now = 0;
    const plan = new CrashPlan(() => now);
    const options = { crashes: 1, places: ['before insert'], path: ['insert'], begin: 1_000, end: 2_000 };
    plan.draw(createRandom('seed'), options);

    const early = plan.reaches('before insert');
    now = 2_000;

    expect([early, plan.reaches('after insert'), plan.reaches('before insert')]).toEqual([
      false,
      false,
      true,
    ]);
    expect(plan.reaches('before insert')).toBe(false);
    expect([...plan.passed]).toEqual(['before insert', 'after insert']);
  });
});

it('tells statements apart by what they do, not by how many rows they have', () => {
  const one = fingerprintOf('insert into t values ($1, $2) returning id');

  expect(fingerprintOf('insert into t values ($1, $2),\n ($3, $4) returning id')).not.toBe(one);
  expect(fingerprintOf('insert into t values ($1, $2),\n ($3, $4) returning id')).toBe(
    fingerprintOf('insert into t values ($1, $2), ($3, $4), ($5, $6) returning id'),
  );
  expect(fingerprintOf("select 'a' where id = 5")).toBe(fingerprintOf("select 'b' where id = 7"));
});

function newProcess() {
  const { promise: death, reject } = Promise.withResolvers<never>();
  death.catch(() => undefined);
  const process: Process = { isDead: false, death, busy: () => ({ [Symbol.dispose]: () => undefined }) };
  const die = () => {
    process.isDead = true;
    reject(new Error('Died'));
  };
  return { process, die };
}
