import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { freePort, spawnService, temporaryFolder } from './support/spawn.ts';

// Other systems don't tell the peak of another process.
describe.runIf(process.platform === 'linux')('npm start on the embedded database', () => {
  it('takes at most 400 MiB at its first start, and 380 MiB later', async () => {
    using folder = temporaryFolder();
    const env = {
      DATA_DIR: folder.path,
      PORT: String(await freePort()),
      GRPC_PORT: String(await freePort()),
      HOST: '127.0.0.1',
    };

    await using first = spawnService(env, { fromSource: true });
    await first.started();
    const atFirst = peakMib(first.child.pid);
    await first.stop();
    await using later = spawnService(env, { fromSource: true });
    await later.started();

    expect(atFirst).toBeLessThan(400);
    expect(peakMib(later.child.pid)).toBeLessThan(380);
  });
});

/** The most memory that a process has held since it began, in MiB. */
function peakMib(pid: number | undefined): number {
  const [, kib] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kib) / 1024;
}
