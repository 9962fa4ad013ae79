import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The temporary folder is the run's own (see global-setup.ts), in all of its processes. */
const folder = () => join(tmpdir(), 'processes');

/** Has a process that this one has started killed at the end of the run. */
export function endWithRun(pid: number | undefined): void {
  mkdirSync(folder(), { recursive: true });
  writeFileSync(join(folder(), String(pid)), '');
}

/** Kills those processes. */
export function endProcesses(): void {
  mkdirSync(folder(), { recursive: true });
  for (const pid of readdirSync(folder())) {
    try {
      process.kill(Number(pid), 'SIGKILL');
    } catch (error) {
      // It has ended by itself.
      if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
    }
  }
}
