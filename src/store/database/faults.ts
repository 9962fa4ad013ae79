/** Why the service can't start, in one line for the person who starts it. */
export class StartError extends Error {
  override name = 'StartError';
}

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
 * What a failed statement left behind: `nothing` if the failure is passing and the statement certainly
 * had no effect, `unknown` if the failure is passing but the statement may have been carried out, and
 * undefined if the failure is lasting (bad data, a constraint, a mistake of ours).
 */
export function passingFault(error: unknown): 'nothing' | 'unknown' | undefined {
  for (let fault = error; fault instanceof Error; fault = fault.cause ?? previousOf(fault)) {
    const code = 'code' in fault && typeof fault.code === 'string' ? fault.code : undefined;
    if (code !== undefined && withoutEffect.has(code)) return 'nothing';
    if (code !== undefined && (lostConnection.has(code) || code.startsWith('08'))) return 'unknown';
    if (nothingSent.test(fault.message)) return 'nothing';
    if (code === undefined && connectionEnded.test(fault.message)) return 'unknown';
    if (fault instanceof AggregateError && fault.errors.length > 0) return passingFault(fault.errors[0]);
  }
  return undefined;
}

/** Whether the connection that failed like this is better not used again. */
export function isConnectionFault(error: unknown): boolean {
  return passingFault(error) !== undefined && !betweenTransactions.has(sqlState(error) ?? '');
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

/** Serialization, deadlock: of two transactions with each other. */
const betweenTransactions = new Set(['40001', '40P01']);

/** Also too many connections, starting up, read-only standby; nobody there, or not to us. */
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

/** Of node-pg, without a code: there was no connection, or what was known to be lost was sent nothing. */
const nothingSent =
  /^timeout exceeded when trying to connect|^Connection terminated due to connection timeout|not queryable$/;

/** Of node-pg, without a code. */
const connectionEnded = /^Connection terminated|^Query read timeout/;

/** MikroORM keeps the driver's error here. */
function previousOf(error: Error): unknown {
  return 'previous' in error ? error.previous : undefined;
}
