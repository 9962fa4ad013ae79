import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

describe('simulated days', () => {
  // A minute on two fast cores with nothing else to do, and several beside other tests.
  it('lose nothing that is not expected, over three seeds', { timeout: 900_000 }, async () => {
    const { code, output } = await runDays({ SEEDS: '3', DAYS: '3', BRIEF: '1' });

    expect(output).toContain('3 seeds from 1');
    expect(output).not.toContain('FAILED');
    expect(code).toBe(0);
  });
});

function runDays(env: Record<string, string>): Promise<{ code: number; output: string }> {
  const main = join(import.meta.dirname, 'days/main.ts');
  const options = { env: { ...process.env, ...env }, maxBuffer: 64 * 1024 * 1024 };
  return new Promise((resolve) => {
    execFile(process.execPath, [main], options, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code ?? 1), output: `${stdout}${stderr}` });
    });
  });
}
