import { parentPort } from 'node:worker_threads';
import { createMatcher } from '../../domain/patterns/matcher.ts';
import { readPattern } from '../../domain/patterns/pattern.ts';
import type { PatternTask } from './pattern-threads.ts';

/** Kept compiled in each thread. */
const KEPT_BYTES = 64 * 1024 * 1024;

if (parentPort === null) throw new Error('This file runs as a worker thread');
const port = parentPort;
const matcher = createMatcher(KEPT_BYTES);
port.on('message', (tasks: PatternTask[]) => {
  port.postMessage(tasks.map(({ source, text }) => matcher.matches(readPattern(source), text)));
});
// An answer to no task: the thread is ready.
port.postMessage([]);
