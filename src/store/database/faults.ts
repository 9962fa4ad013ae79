import { hasCode } from '../../domain/errors/system-errors.ts';

/** The database can't be reached or doesn't answer in time. Nothing is known to be wrong with the request. */
export class DatabaseUnavailable extends Error {
  override name = 'DatabaseUnavailable';
  constructor(cause?: unknown) {
    super('The database is unavailable.', { cause });
  }
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
    if (code !== undefined && withoutEffect.has(code)) return 'nothing';
    if (code !== undefined && (lostConnection.has(code) || code.startsWith('08'))) return 'unknown';
    if (nothingSent.test(fault.message)) return 'nothing';
    if (code === undefined && connectionEnded.test(fault.message)) return 'unknown';
    if (fault instanceof AggregateError && fault.errors.length > 0) return transientFault(fault.errors[0]);
  }
  return undefined;
}

/** Whether the connection should be closed after this error, rather than used again. */
export function isConnectionFault(error: unknown): boolean {
  return transientFault(error) !== undefined && !betweenTransactions.has(sqlState(error) ?? '');
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

const DISK_FULL = '53100';

/** Bad data, a constraint, a row beyond a limit of the database: lasting, and of one row of a batch alone. */
export function isDataError(error: unknown): boolean {
  return /^(22|23|54)/.test(sqlState(error) ?? '');
}

/** SQLSTATE: serialization failure, deadlock. Nothing is wrong with the connection. */
const betweenTransactions = new Set(['40001', '40P01']);

/** Too many connections, starting up, read-only standby; no such database, not logged in, nobody there. */
const withoutEffect = new Set([
  ...betweenTransactions,
  '53300',
  '57P03',
  '25006',
  '3D000',
  '28000',
  '28P01',
  'ECONNREFUSED',
  'ENOTFOUND',
]);

/** Cancelled by the statement time-out or by hand, shut down, crashed, reset by the network. */
const lostConnection = new Set([
  '57014',
  '57P01',
  '57P02',
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
