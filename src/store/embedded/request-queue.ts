import type { DatabaseRequest } from './messages.ts';

/**
 * The requests that wait for the embedded database, which does one thing after the other. While a transaction is open
 * only its own are taken. What takes long lets others go first, but not for longer than `LONGEST_WAIT_MS`.
 */
export function createRequestQueue(now = () => performance.now()): RequestQueue {
  const waiting: DatabaseRequest[] = [];
  const late: DatabaseRequest[] = [];
  const ofTransaction: DatabaseRequest[] = [];
  const last: DatabaseRequest[] = [];
  let openTransaction: number | undefined;
  let lateWaitSince = 0;

  function placeOf(request: DatabaseRequest): DatabaseRequest[] {
    if (request.what === 'close') return last;
    if (request.what !== 'statement') return waiting;
    if (openTransaction !== undefined && request.transaction === openTransaction) return ofTransaction;
    return request.isLate ? late : waiting;
  }

  return {
    add(request) {
      const place = placeOf(request);
      if (place === late && late.length === 0) lateWaitSince = now();
      place.push(request);
    },
    take() {
      if (openTransaction !== undefined) return ofTransaction.shift();
      if (late.length > 0 && (waiting.length === 0 || now() - lateWaitSince > LONGEST_WAIT_MS)) {
        lateWaitSince = now();
        return late.shift();
      }
      return waiting.shift() ?? last.shift();
    },
    end(request, succeeded) {
      if (request.what !== 'statement') return;
      if (request.step === 'begin' && succeeded) openTransaction = request.transaction;
      if (request.step === 'end') openTransaction = undefined;
    },
  };
}

/** Where others never end, what takes long comes so often. */
const LONGEST_WAIT_MS = 50;

export type RequestQueue = {
  add(request: DatabaseRequest): void;
  /** The next to be run; undefined if none may be. */
  take(): DatabaseRequest | undefined;
  /** Called after the one that was taken last. */
  end(request: DatabaseRequest, succeeded: boolean): void;
};
