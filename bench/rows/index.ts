import type { Row } from '../support/bench.ts';
import { accept } from './accept.ts';
import { acceptEmbedded } from './accept-embedded.ts';
import { acceptFull } from './accept-full.ts';
import { acceptKeyed } from './accept-keyed.ts';
import { acceptRpc } from './accept-rpc.ts';
import { list } from './list.ts';

/** Every row, in the order of the table of results. */
export const rows: Row[] = [accept, acceptRpc, acceptKeyed, acceptEmbedded, list, acceptFull];
