import { setImmediate as nextTurn } from 'node:timers/promises';
import type { HandlerContext } from '@connectrpc/connect';
import type { Database } from '../../store/database/database.ts';
import { listSubmissions, type SubmissionFilter } from '../../store/submissions/submission-pages.ts';
import type { Submission } from '../../store/submissions/submissions.ts';
import { limitCallsAtOnce } from '../limits/owner-calls.ts';

/**
 * Goes through the newest submissions of a form that fit a filter, newest first, until `visit` returns false or as
 * many were read as one call may: `MAX_SCANNED`, or what holds `MAX_SCANNED_BYTES`.
 *
 * Any number of owners may ask, so that one call reads at a time in this process, in small pages between which
 * others are served; few may wait.
 */
export function createScanner(database: Database): Scan {
  let last: Promise<unknown> = Promise.resolve();
  const enter = limitCallsAtOnce(WAITING);

  async function scan({ formId, filter, before, already = 0 }: ScanRange, visit: Visit): Promise<ScanResult> {
    let scanned = already;
    let bytes = 0;
    let cursor = before;
    while (scanned < MAX_SCANNED && bytes < MAX_SCANNED_BYTES) {
      const page = { limit: Math.min(PAGE_ROWS, MAX_SCANNED - scanned), cursor, bytes: PAGE_BYTES };
      const { items, nextCursor } = await listSubmissions(database, formId, filter, page);
      for (const item of items) {
        scanned += 1;
        bytes += JSON.stringify(item.answers).length;
        if (!visit(item)) return { scanned, truncated: false };
      }
      if (nextCursor === null) return { scanned, truncated: false };
      cursor = nextCursor;
      await nextTurn();
    }
    return { scanned, truncated: true };
  }

  return async (range, call, visit) => {
    using _ = enter(call);
    const reading = last.then(() => scan(range, visit));
    last = reading.catch(() => undefined);
    return await reading;
  };
}

/** How many submissions a search or a statistic reads, at most. */
const MAX_SCANNED = 10_000;

/** Some seconds of reading from the embedded database; 10,000 submissions of 3 KiB. */
const MAX_SCANNED_BYTES = 32 * 1024 * 1024;

/** Some milliseconds of work. */
const PAGE_ROWS = 150;
const PAGE_BYTES = 256 * 1024;

/** Calls that wait for their turn, and read. */
const WAITING = { perOwner: 2, perClient: 4, total: 20 };

export type Scan = (range: ScanRange, call: HandlerContext, visit: Visit) => Promise<ScanResult>;

/** `before` is the id from which on to read; `already` how many were read on pages before this one. */
type ScanRange = { formId: string; filter: SubmissionFilter; before?: string | undefined; already?: number };

/** False: no more are wanted. */
type Visit = (submission: Submission) => boolean;

/** `truncated`: the limit was reached, and there are older submissions. */
type ScanResult = { scanned: number; truncated: boolean };
