import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { until } from './until.ts';

/**
 * A terminal in a folder, with a variable or a folder that a command sets holding for those after it. What it
 * leaves running is killed when it is closed.
 */
export function openTerminal(folder: string, env: Record<string, string | undefined>): Terminal {
  const state = join(folder, '.terminal');
  mkdirSync(folder, { recursive: true });
  const running: Run[] = [];

  /** Runs commands in a process group of their own, and ends at the first that fails. */
  function start(commands: string): Run {
    const before = existsSync(state) ? `. ${quote(state)}\n` : '';
    const after = `trap '{ export -p; printf "cd %q\\n" "$PWD"; } > ${quote(state)}' EXIT\n`;
    const child = spawn('bash', ['-c', `${before}set -aeo pipefail\n${after}${commands}`], {
      cwd: folder,
      env,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const run: Run = { child, output: '', errors: '', closed: once(child, 'close') };
    child.stdout.setEncoding('utf8').on('data', (text: string) => (run.output += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (run.errors += text));
    running.push(run);
    return run;
  }

  return {
    async run(commands) {
      const run = start(commands);
      await run.closed;
      return { code: run.child.exitCode, output: run.output, errors: run.errors };
    },
    async runUntil(commands, text) {
      const run = start(commands);
      const said = () => run.output + run.errors;
      await until(() => said().includes(text) || run.child.exitCode !== null, 120_000, said);
      if (!said().includes(text)) throw new Error(`It ended without saying ${text}: ${said()}`);
      return said;
    },
    async [Symbol.asyncDispose]() {
      for (const { child, closed } of running) {
        if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) {
          process.kill(-child.pid, 'SIGKILL');
        }
        await closed;
      }
    },
  };
}

/** Text as one word of a shell. */
function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

export type Terminal = AsyncDisposable & {
  run(commands: string): Promise<{ code: number | null; output: string; errors: string }>;
  /** Resolves once the commands have said a text, with what reads all they have said; they go on. */
  runUntil(commands: string, text: string): Promise<() => string>;
};

type Run = { child: ChildProcess; output: string; errors: string; closed: Promise<unknown> };
