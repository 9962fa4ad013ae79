import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';

/** Of Debian's package `prometheus`. */
const path = process.env.PROMTOOL_PATH ?? '/usr/bin/promtool';

/** Without it, what it checks is left out. In CI that fails instead. */
export const noPromtool = !existsSync(path) && !process.env.CI;

/** Runs promtool in a folder, with a text on its standard input. */
export function promtool(args: string[], cwd: string, input = ''): { ok: boolean; output: string } {
  const { status, stdout, stderr, error } = spawnSync(path, args, { cwd, input, encoding: 'utf8' });
  return { ok: status === 0, output: error?.message ?? `${stdout}${stderr}` };
}
