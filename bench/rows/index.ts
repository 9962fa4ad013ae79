import type { Row } from '../support/bench.ts';
import { accept } from './accept.ts';
import { acceptDeliver } from './accept-deliver.ts';
import { acceptEmbedded } from './accept-embedded.ts';
import { acceptFull } from './accept-full.ts';
import { acceptKeyed } from './accept-keyed.ts';
import { acceptMetrics } from './accept-metrics.ts';
import { acceptRpc } from './accept-rpc.ts';
import { awaiting } from './await.ts';
import { bytes } from './bytes.ts';
import { deliver } from './deliver.ts';
import { exporting } from './export.ts';
import { fairness } from './fairness.ts';
import { idle } from './idle.ts';
import { lag } from './lag.ts';
import { list } from './list.ts';
import { listFiltered } from './list-filtered.ts';
import { memory } from './memory.ts';
import { memoryEmbedded } from './memory-embedded.ts';
import { neighbours } from './neighbours.ts';
import { overload } from './overload.ts';
import { page } from './page.ts';
import { snapshot } from './snapshot.ts';
import { start } from './start.ts';
import { workers } from './workers.ts';

/** Every row, in the order of the table of results. */
export const rows: Row[] = [
  acceptDeliver,
  accept,
  acceptRpc,
  acceptKeyed,
  acceptMetrics,
  acceptEmbedded,
  deliver,
  snapshot,
  fairness,
  lag,
  neighbours,
  awaiting,
  idle,
  list,
  listFiltered,
  acceptFull,
  exporting,
  page,
  start,
  memory,
  memoryEmbedded,
  overload,
  workers,
  bytes,
];
