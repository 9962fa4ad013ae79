import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { claimDataFolder } from '../../src/store/database/data-folder.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'forms-folder-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe('claiming a data folder', () => {
  it('refuses a second claim, by name of the process that holds it', async () => {
    const claim = await claimDataFolder(folder);

    await expect(claimDataFolder(folder)).rejects.toMatchObject({
      name: 'StartError',
      message: `The data folder ${folder} is in use by process ${process.pid}. Stop it first, or set DATA_DIR.`,
    });
    claim.release();
  });

  it('refuses while another process holds it, and takes it over once that was killed', async () => {
    const holder = await startHolder();
    await expect(claimDataFolder(folder)).rejects.toThrow(`in use by process ${holder.pid}`);

    holder.kill('SIGKILL');
    await once(holder, 'close');
    const claim = await claimDataFolder(folder);

    expect(JSON.parse(readFileSync(lockFile(), 'utf8'))).toMatchObject({ pid: process.pid });
    claim.release();
    expect(readdirSync(folder)).toEqual([]);
  });

  it('takes over from a dead process whose number another one has now', async () => {
    const reused = { pid: process.ppid, host: hostname(), started: 'long ago' };
    writeFileSync(lockFile(), JSON.stringify(reused));

    const claim = await claimDataFolder(folder);

    claim.release();
  });

  it('takes over from another machine only when that has fallen silent', { timeout: 30_000 }, async () => {
    writeFileSync(lockFile(), JSON.stringify({ pid: 1, host: 'elsewhere', started: '' }));
    const beating = setInterval(() => {
      writeFileSync(lockFile(), JSON.stringify({ pid: 1, host: 'elsewhere', started: '' }));
    }, 500);

    await expect(claimDataFolder(folder)).rejects.toThrow('in use by process 1');
    clearInterval(beating);
    const claim = await claimDataFolder(folder);

    claim.release();
  });

  it('lets one of many take a dead lock over', async () => {
    const dead = JSON.stringify({ pid: 2 ** 22 + 1, host: hostname(), started: '' });
    writeFileSync(lockFile(), dead);

    const claims = await Promise.allSettled([startHolder(), startHolder(), startHolder()]);

    const holders = claims.flatMap((claim) => (claim.status === 'fulfilled' ? [claim.value] : []));
    expect(holders).toHaveLength(1);
    for (const holder of holders) holder.kill('SIGKILL');
  });

  it('says in one line that it can’t write', async () => {
    writeFileSync(join(folder, 'file'), '');

    const failure = claimDataFolder(join(folder, 'file', 'below'));

    await expect(failure).rejects.toMatchObject({
      name: 'StartError',
      message: expect.stringMatching(/^The data folder .*below can't be written: [^\n]*$/),
    });
  });
});

function lockFile(): string {
  return join(folder, 'in-use.json');
}

/** Another process that claims the folder and lives; fails if its claim does. */
async function startHolder() {
  const source = join(import.meta.dirname, '../../src/store/database/data-folder.ts');
  const script = `
    const { claimDataFolder } = await import(${JSON.stringify(source)});
    await claimDataFolder(${JSON.stringify(folder)});
    console.log('held');
    setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const held = await Promise.race([
    once(child.stdout, 'data').then(() => true),
    once(child, 'close').then(() => false),
  ]);
  if (!held) throw new Error('The claim was refused');
  return child;
}
