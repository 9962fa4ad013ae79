import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** What is alive in this process, with the services that tests have started in it, in MiB. */
export function heapMib(): number {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
  return Math.round(process.memoryUsage().heapUsed / 1024 ** 2);
}
