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

/** What `doReferenceWork` takes on the machine for which the bounds are written, while both its cores are busy. */
export const REFERENCE_MS = 1;

const text = JSON.stringify(
  Array.from({ length: 2_000 }, (_, n) => ({ id: `field_${n}`, label: `${n}`, n })),
);

/** The same work each time, by which the speed of the processors is known. */
export function doReferenceWork(): void {
  JSON.parse(text);
}
