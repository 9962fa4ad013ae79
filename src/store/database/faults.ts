import { setTimeout as sleep } from 'node:timers/promises';
import { hasCode } from '../../domain/errors/system-errors.ts';

/** The database can't be reached or doesn't answer in time. Nothing is known to be wrong with the request. */
export class DatabaseUnavailable extends Error {
  override name = 'DatabaseUnavailable';
  constructor(cause?: unknown) {
    super('The database is unavailable.', { cause });
  }
}

/**
 * A statement of a list, a search, an export or a statistic took longer than `LIST_STATEMENT_MS`, as it would again.
 */
export class ReadTooLong extends Error {
  override name = 'ReadTooLong';
}

/** More waits to be stored than may wait: the caller should come back a little later. */
export class Overloaded extends Error {
  override name = 'Overloaded';
  constructor() {
    super('Too many submissions wait to be stored.');
  }
}

/**
 * What a statement that failed with a transient fault left behind: `nothing` if it certainly had no effect,
 * `unknown` if it may have been carried out. Undefined for any other error (bad data, a constraint, a
 * mistake of ours), which would come again.
 */
export function transientFault(error: unknown): 'nothing' | 'unknown' | undefined {
  for (let fault = error; fault instanceof Error; fault = fault.cause ?? previousOf(fault)) {
    const code = 'code' in fault && typeof fault.code === 'string' ? fault.code : undefined;
    if (code !== undefined && (withoutEffect.has(code) || code.startsWith('53'))) return 'nothing';
    if (code !== undefined && (lostConnection.has(code) || code.startsWith('08'))) return 'unknown';
    if (nothingSent.test(fault.message)) return 'nothing';
    if (code === undefined && connectionEnded.test(fault.message)) return 'unknown';
    if (fault instanceof AggregateError && fault.errors.length > 0) return transientFault(fault.errors[0]);
  }
  return undefined;
}

/** Whether the connection should be closed after this error, rather than used again. */
export function isConnectionFault(error: unknown): boolean {
  const state = sqlState(error) ?? '';
  const isKept = betweenTransactions.has(state) || (state.startsWith('53') && state !== TOO_MANY_CONNECTIONS);
  return transientFault(error) !== undefined && !isKept;
}

/**
 * Whether this machine or its network failed, no matter who was to be called: name servers that don't answer, no file
 * descriptor or port left, no way out. Of several addresses that were tried, all must have failed so.
 */
export function isLocalFault(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof AggregateError && error.errors.length > 0) return error.errors.every(isLocalFault);
  // nodemailer has a code of its own in place of the system's, which it keeps beside it.
  const code = 'originalCode' in error ? error.originalCode : 'code' in error && error.code;
  return localFaults.has(String(code)) || isLocalFault(error.cause);
}

/** The SQLSTATE of a database error, wherever the ORM has wrapped it. */
export function sqlState(error: unknown): string | undefined {
  for (let fault = error; fault instanceof Error; fault = fault.cause ?? previousOf(fault)) {
    if ('code' in fault && typeof fault.code === 'string' && /^[0-9A-Z]{5}$/.test(fault.code)) {
      return fault.code;
    }
  }
  return undefined;
}

/** Whether there was no space left to store something: of the database's disk, or of a file's. */
export function isDiskFull(error: unknown): boolean {
  return sqlState(error) === DISK_FULL || hasCode(error, 'ENOSPC', 'EDQUOT');
}

/** Whether nothing could be stored for want of space, or since the database is read-only. */
export function isStorageFault(error: unknown): boolean {
  return isDiskFull(error) || sqlState(error) === READ_ONLY;
}

const DISK_FULL = '53100';
const READ_ONLY = '25006';

/** Bad data, a constraint, a row beyond a limit of the database: lasting, and of one row of a batch alone. */
export function isDataError(error: unknown): boolean {
  return /^(22|23|54)/.test(sqlState(error) ?? '');
}

/** SQLSTATE: cancelled by the statement time-out or by hand. */
const QUERY_CANCELED = '57014';

/** Runs a read whose statements have `LIST_STATEMENT_MS`. */
export async function inTimedRead<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (sqlState(error) === QUERY_CANCELED) throw new ReadTooLong('A read took too long', { cause: error });
    throw error;
  }
}

/** SQLSTATE: serialization failure, deadlock. Nothing is wrong with the connection. */
const betweenTransactions = new Set(['40001', '40P01']);

/** No answer of a name server (of `getaddrinfo`, and of c-ares), no file descriptor or port left. */
const noConnection = ['EAI_AGAIN', 'ETIMEOUT', 'EMFILE', 'ENFILE', 'EADDRNOTAVAIL'];
const noNetwork = ['ENETUNREACH', 'ENETDOWN'];

const localFaults = new Set([...noConnection, ...noNetwork]);

const TOO_MANY_CONNECTIONS = '53300';

/**
 * Starting up, read-only standby; no such database, not logged in, nobody there. Beside them all of class 53, what the
 * server lacks: connections, disk, memory.
 */
const withoutEffect = new Set([
  ...betweenTransactions,
  ...noConnection,
  '57P03',
  '25006',
  '3D000',
  '28000',
  '28P01',
  'ECONNREFUSED',
  'ENOTFOUND',
]);

/** Cancelled, shut down, crashed, reset by the network. */
const lostConnection = new Set([
  QUERY_CANCELED,
  '57P01',
  '57P02',
  ...noNetwork,
  'ECONNABORTED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
]);

/** Messages of node-pg, which have no code: not connected, or known to be disconnected before sending. */
const nothingSent =
  /^timeout exceeded when trying to connect|^Connection terminated due to connection timeout|not queryable$/;

/** Messages of node-pg, which have no code: disconnected while the statement ran. */
const connectionEnded = /^Connection terminated|^Query read timeout/;

/** MikroORM keeps the driver's error here. */
function previousOf(error: Error): unknown {
  return 'previous' in error ? error.previous : undefined;
}

/**
 * Runs database work again while it fails with a transient fault, at most three times within ten seconds.
 *
 * Work whose outcome is unknown runs again only if `isRepeatable` says so after the failure: a read always
 * is, a transaction until its commit.
 *
 * @throws DatabaseUnavailable if the fault persists; any other error as it is.
 */
export async function withRetries<T>(work: () => Promise<T>, isRepeatable: () => boolean): Promise<T> {
  const giveUpAt = performance.now() + RETRY_WINDOW_MS;
  for (let failures = 1; ; failures += 1) {
    try {
      return await work();
    } catch (error) {
      if (error instanceof DatabaseUnavailable || error instanceof ReadTooLong) throw error;
      const left = transientFault(error);
      if (left === undefined) throw error;

      const delay = FIRST_DELAY_MS * 4 ** (failures - 1) * (0.5 + Math.random());
      const mayRepeat = left === 'nothing' || isRepeatable();
      if (!mayRepeat || failures > MAX_RETRIES || performance.now() + delay > giveUpAt) {
        throw new DatabaseUnavailable(error);
      }
      await sleep(delay);
    }
  }
}

const MAX_RETRIES = 3;

/** The last try begins within this. */
export const RETRY_WINDOW_MS = 10_000;

/** A server that can't be connected to within this is treated as away. */
export const CONNECT_TIMEOUT_MS = 5_000;

/**
 * What a statement of a list, a search, an export or a statistic may take, by the server's `statement_timeout`; a page
 * takes some milliseconds of it. The embedded database can't stop a statement: there, these are in steps.
 */
export const LIST_STATEMENT_MS = 3_000;

/** When the server itself is silent: a little more than a statement may take. */
export const ANSWER_TIMEOUT_MS = 12_000;

/** The longest from the first try of a statement to the end of the last one. */
export const LONGEST_STATEMENT_MS = RETRY_WINDOW_MS + CONNECT_TIMEOUT_MS + ANSWER_TIMEOUT_MS;

/**
 * How often an insert may meet a row that is deleted before it is found. More in a row mean a bug: give up
 * with `DatabaseUnavailable`.
 */
export const MAX_CONFLICTS = 3;

/** Long enough for the other side of a deadlock to finish; the third retry comes after about a second. */
const FIRST_DELAY_MS = 50;

/**
 * Works on a batch whose items succeed or fail together. One that fails for an item is split until that item is by
 * itself, and `alone` says what becomes of it. Returns what came of all, in the order of the items.
 *
 * `isOfItem` tells whether an error is an item's, by default one of its data; any other one is thrown.
 */
export async function splitBatch<Item, Result>(
  batch: Item[],
  work: (part: Item[]) => Promise<Result[]>,
  alone: (item: Item, error: unknown) => Result[] | Promise<Result[]>,
  isOfItem: (error: unknown) => boolean = isDataError,
): Promise<Result[]> {
  try {
    return await work(batch);
  } catch (error) {
    const [item] = batch;
    if (item === undefined || !isOfItem(error)) throw error;
    if (batch.length === 1) return alone(item, error);
    const middle = Math.ceil(batch.length / 2);
    const first = await splitBatch(batch.slice(0, middle), work, alone, isOfItem);
    return [...first, ...(await splitBatch(batch.slice(middle), work, alone, isOfItem))];
  }
}
