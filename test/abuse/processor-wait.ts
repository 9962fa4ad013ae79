import { readFileSync } from 'node:fs';

/**
 * How long the calling thread, and the one with the event loop of a process if one is named, have been ready to run without a
 * processor so far, in milliseconds by the kernel's account. What else runs on the machine is not the doing of
 * the service that is measured.
 */
export function waitedForProcessor(pid?: number): number {
  // A process's file tells of its first thread, which has its event loop.
  const threads = ['/proc/thread-self/schedstat', ...(pid === undefined ? [] : [`/proc/${pid}/schedstat`])];
  const waited = threads.map((file) => Number(readFileSync(file, 'utf8').split(' ')[1]));
  return waited.reduce((sum, nanoseconds) => sum + nanoseconds) / 1e6;
}
