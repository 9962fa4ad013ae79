import { Agent, get } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import { REFERENCE_MS, timeReferenceWork, waitedForProcessor } from './processor-wait.ts';

/** Between two probes; bounds how short a block can be missed. */
const PAUSE_MS = 5;
/** What an attack has begun is looked at for so long after it. */
const AFTERMATH_MS = 1_000;

/**
 * A thread that asks `/health` of the service at `workerData.url`, one call after the other. Says 'ready'
 * after the first answer; a second after any message to it, says the longest time in milliseconds and ends.
 * A call that fails counts as endless.
 *
 * Not counted is how long this thread, or the event loop of the process `workerData.pid`, waited for a processor.
 * Where the same work takes longer than `REFERENCE_MS`, the times are given as they would be without.
 */
const agent = new Agent({ keepAlive: true });
const works: number[] = [];
let endsAt = Number.POSITIVE_INFINITY;
let slowest = 0;

await probe();
parentPort?.once('message', () => (endsAt = performance.now() + AFTERMATH_MS));
parentPort?.postMessage('ready');
while (performance.now() < endsAt) {
  slowest = Math.max(slowest, await probe());
  works.push(timeReferenceWork());
  await sleep(PAUSE_MS);
}
works.sort((a, b) => a - b);
const slowness = Math.max(1, (works[works.length >> 1] ?? 0) / REFERENCE_MS);
parentPort?.postMessage({ slowestHealthMs: slowest / slowness, slowness });
agent.destroy();

async function probe(): Promise<number> {
  const begun = performance.now();
  const waitedBefore = waitedForProcessor(workerData.pid);
  const status = await new Promise((resolve) => {
    get(`${workerData.url}/health`, { agent, timeout: 10_000 }, (response) => {
      response.resume().once('end', () => resolve(response.statusCode));
    })
      .once('error', resolve)
      .once('timeout', () => resolve('timeout'));
  });
  if (status !== 200) return Number.POSITIVE_INFINITY;
  return performance.now() - begun - (waitedForProcessor(workerData.pid) - waitedBefore);
}
