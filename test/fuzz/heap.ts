import { collectGarbage } from '../support/garbage.ts';

/** What is alive in this process, with the services that tests have started in it, in MiB. */
export function heapMib(): number {
  collectGarbage();
  return Math.round(process.memoryUsage().heapUsed / 1024 ** 2);
}
