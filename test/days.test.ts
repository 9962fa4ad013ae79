import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

describe('simulated days', () => {
  // The path of a submission, a dry run and one with crashes; each is followed by days in which retries end.
  it('lose nothing that is not expected, over one seed', async () => {
    const { code, output } = await runDays({ SEEDS: '1', DAYS: '1', BRIEF: '1' });

    expect(output).toContain('1 seeds from 1');
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
