import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { lockDataFolder } from '../../../src/store/database/data-folder.ts';
import { until } from '../../support/until.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'forms-folder-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe('locking a data folder', () => {
  it('refuses a second lock, by name of the process that holds it', () => {
    const lock = lockDataFolder(folder, unexpected);

    expect(() => lockDataFolder(folder, unexpected)).toThrow(
      `The data folder ${folder} is in use by process ${process.pid}. Stop it first, or set DATA_DIR.`,
    );
    lock.release();
    lockDataFolder(folder, unexpected).release();
  });

  it('refuses while another process holds it, though that is busy, until that was killed', async () => {
    const holder = await startHolder({ busy: true });
    expect(() => lockDataFolder(folder, unexpected)).toThrow(`in use by process ${holder.pid}.`);

    holder.kill('SIGKILL');
    await once(holder, 'close');

    lockDataFolder(folder, unexpected).release();
  });

  it('names the host of a holder elsewhere', async () => {
    const holder = await startHolder();
    writeFileSync(join(folder, 'in-use.txt'), '1 elsewhere');

    expect(() => lockDataFolder(folder, unexpected)).toThrow('in use by process 1 on elsewhere.');
    holder.kill('SIGKILL');
  });

  it('gives one of many the lock that a killed process left', async () => {
    const killed = await startHolder();
    killed.kill('SIGKILL');
    await once(killed, 'close');

    const starts = await Promise.allSettled([startHolder(), startHolder(), startHolder()]);

    const holders = starts.flatMap((start) => (start.status === 'fulfilled' ? [start.value] : []));
    expect(holders).toHaveLength(1);
    for (const holder of holders) holder.kill('SIGKILL');
  });

  it.each(['removed', 'replaced'])('tells its holder when the lock was %s', async (how) => {
    let lost = 0;
    const lock = lockDataFolder(folder, () => {
      lost += 1;
    });

    rmSync(join(folder, 'in-use.sqlite'));
    if (how === 'replaced') writeFileSync(join(folder, 'in-use.sqlite'), '');

    await until(() => lost === 1);
    lock.release();
  });

  it('keeps the folder to its owner', () => {
    lockDataFolder(join(folder, 'data'), unexpected).release();

    expect(statSync(join(folder, 'data')).mode & 0o777).toBe(0o700);
  });

  it('says in one line that it can’t write', () => {
    writeFileSync(join(folder, 'file'), '');

    expect(() => lockDataFolder(join(folder, 'file', 'below'), unexpected)).toThrow(
      /^The data folder .*below can't be written: [^\n]*$/,
    );
  });
});

function unexpected(): never {
  throw new Error('The lock is lost');
}

/** Another process that locks the folder and lives, with its event loop blocked if `busy`; fails if it can't. */
async function startHolder({ busy = false } = {}) {
  const source = join(import.meta.dirname, '../../../src/store/database/data-folder.ts');
  const script = `
    const { lockDataFolder } = await import(${JSON.stringify(source)});
    const { writeSync } = await import('node:fs');
    lockDataFolder(${JSON.stringify(folder)}, () => {});
    writeSync(1, 'held');
    if (${busy}) for (;;);
    setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const held = await Promise.race([
    once(child.stdout, 'data').then(() => true),
    once(child, 'close').then(() => false),
  ]);
  if (!held) throw new Error('The lock was refused');
  return child;
}
