import { readdirSync, readFileSync } from 'node:fs';

/**
 * How long the calling thread, and those of a process that run JavaScript if one is named, have been ready to run without
 * a processor so far, in milliseconds by the kernel's account. What else runs on the machine is not the doing of the
 * service that is measured. Threads that wait at the same time count each, so that a busy machine is never to blame.
 */
export function waitedForProcessor(pid?: number): number {
  const files = ['/proc/thread-self/schedstat', ...(pid === undefined ? [] : scriptThreads(pid))];
  const waited = files.map((file) => Number(readFileSync(file, 'utf8').split(' ')[1]));
  return waited.reduce((sum, nanoseconds) => sum + nanoseconds) / 1e6;
}

/** The accounts of a process's event loop and of its workers, such as the one with the embedded database. */
function scriptThreads(pid: number): string[] {
  const known = threadsOf.get(pid);
  if (known !== undefined) return known;
  const tasks = readdirSync(`/proc/${pid}/task`).map((id) => `/proc/${pid}/task/${id}`);
  const named = tasks.filter((task) => /^(Main|Worker)Thread$/m.test(readFileSync(`${task}/comm`, 'utf8')));
  const threads = named.map((task) => `${task}/schedstat`);
  threadsOf.set(pid, threads);
  return threads;
}

const threadsOf = new Map<number, string[]>();

/** What `timeReferenceWork` measures on the machine for which the bounds are written, while both its cores are busy. */
export const REFERENCE_MS = 1;

const text = JSON.stringify(
  Array.from({ length: 2_000 }, (_, n) => ({ id: `field_${n}`, label: `${n}`, n })),
);

/** Processor time of the same work each time, in milliseconds, by which the speed of the processors is known. */
export function timeReferenceWork(): number {
  const begun = process.threadCpuUsage();
  JSON.parse(text);
  const { user, system } = process.threadCpuUsage(begun);
  return (user + system) / 1_000;
}
