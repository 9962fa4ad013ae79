import { setImmediate as nextTurn } from 'node:timers/promises';
import { Reason } from '../../../gen/forms/v1/errors_pb.js';
import type { Owner } from '../../rpc/context.ts';
import { failed } from '../../rpc/errors.ts';
import type { Database } from '../../store/database/database.ts';
import { listSubmissions, type SubmissionFilter } from '../../store/submission-pages.ts';
import type { Submission } from '../../store/submissions.ts';

/**
 * Goes through the newest submissions of a form that fit a filter, newest first, until `visit` returns false or as
 * many were read as one call may: `MAX_SCANNED`, or what holds `MAX_SCANNED_BYTES`.
 *
 * Any number of owners may ask, so that one call reads at a time in this process, in small pages between which
 * others are served; few may wait.
 */
export function createScanner(database: Database): Scan {
  let last: Promise<unknown> = Promise.resolve();
  const waiting = new Map<string, number>();
  let total = 0;

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

  return async (range, { address }, visit) => {
    const own = waiting.get(address) ?? 0;
    if (own >= MAX_WAITING_OF_OWNER || total >= MAX_WAITING) {
      throw failed(Reason.RATE_LIMITED, 'Too many searches at once: try again soon', { retryAfter: 2 });
    }
    waiting.set(address, own + 1);
    total += 1;
    const reading = last.then(() => scan(range, visit));
    last = reading.catch(() => undefined);
    try {
      return await reading;
    } finally {
      total -= 1;
      const left = (waiting.get(address) ?? 1) - 1;
      if (left === 0) waiting.delete(address);
      else waiting.set(address, left);
    }
  };
}

/** How many submissions a search or a statistic reads, at most. */
const MAX_SCANNED = 10_000;

/** Some seconds of reading from the embedded database; 10,000 submissions of 3 KiB. */
const MAX_SCANNED_BYTES = 32 * 1024 * 1024;

/** Some milliseconds of work. */
const PAGE_ROWS = 150;
const PAGE_BYTES = 256 * 1024;

/** Calls that wait for their turn, and read; of one owner, and of all. */
const MAX_WAITING_OF_OWNER = 2;
const MAX_WAITING = 20;

export type Scan = (range: ScanRange, owner: Owner, visit: Visit) => Promise<ScanResult>;

/** `before` is the id from which on to read; `already` how many were read on pages before this one. */
type ScanRange = { formId: string; filter: SubmissionFilter; before?: string | undefined; already?: number };

/** False: no more are wanted. */
type Visit = (submission: Submission) => boolean;

/** `truncated`: the limit was reached, and there are older submissions. */
type ScanResult = { scanned: number; truncated: boolean };
