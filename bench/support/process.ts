import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Starts a program of `bench/limits` (or another module of bench) as a process of its own, and waits for
 * its first message, which says that it is ready. See `serve` for the other side.
 */
export async function startProgram<Ready = unknown>(file: string, input: object): Promise<Program<Ready>> {
  const child = fork(join(import.meta.dirname, '..', file), [JSON.stringify(input)], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const ready: Ready = await nextMessage(child, file);
  return {
    ready,
    usage: () => usageOf(child.pid ?? 0),
    async ask(question) {
      child.send(question);
      return nextMessage(child, file);
    },
    async [Symbol.asyncDispose]() {
      await endProcess(child);
    },
  };
}

/** Ends a process that this one started: by SIGTERM, and by force when that does nothing for 15 s. */
export async function endProcess(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  const force = setTimeout(() => child.kill('SIGKILL'), PATIENCE_MS);
  child.kill('SIGTERM');
  await ended;
  clearTimeout(force);
}

/** Ends a process that was started `detached`, and all that it started in turn. */
export async function endGroup(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit');
  if (child.pid !== undefined) process.kill(-child.pid, 'SIGTERM');
  await ended;
}

/** What a process and its children have used so far, and hold now. Gone processes have used nothing. */
export function usageOf(pid: number): Usage {
  const family = [pid, ...childrenOf(pid)];
  return family.map(usageOfOne).reduce((sum, one) => ({
    cpuMicros: sum.cpuMicros + one.cpuMicros,
    residentMib: sum.residentMib + one.residentMib,
  }));
}

/** The most memory that a process without children has held since it began, in MiB. */
export function peakMibOf(pid: number): number {
  const [, kib] = /^VmHWM:\s+(\d+) kB$/m.exec(read(`/proc/${pid}/status`)) ?? [];
  return Number(kib) / 1024;
}

const PATIENCE_MS = 15_000;

async function nextMessage<T>(child: ChildProcess, file: string): Promise<T> {
  const ended = new AbortController();
  const { signal } = ended;
  const message = once(child, 'message', { signal }).then(([value]) => value);
  const exit = once(child, 'exit', { signal }).then(([code]) => {
    throw new Error(`${file} ended with ${code}.`);
  });
  try {
    return await Promise.race([message, exit]);
  } finally {
    ended.abort();
    await Promise.allSettled([message, exit]);
  }
}

function childrenOf(pid: number): number[] {
  const text = read(`/proc/${pid}/task/${pid}/children`);
  const children = text.split(' ').filter(Boolean).map(Number);
  return [...children, ...children.flatMap(childrenOf)];
}

/** Fields are counted after the program's name, which may hold spaces; times are in hundredths of a second. */
function usageOfOne(pid: number): Usage {
  const stat = read(`/proc/${pid}/stat`);
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [user, system, pages] = [fields[11], fields[12], fields[21]].map((field) => Number(field ?? 0));
  return {
    cpuMicros: ((user ?? 0) + (system ?? 0)) * 10_000,
    residentMib: ((pages ?? 0) * 4096) / 2 ** 20,
  };
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

export type Usage = { cpuMicros: number; residentMib: number };

export type Program<Ready> = AsyncDisposable & {
  /** The first message. */
  ready: Ready;
  usage: () => Usage;
  /** Sends a question and waits for its answer. One at a time. */
  ask<Answer>(question: object): Promise<Answer>;
};
