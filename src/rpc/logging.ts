import { randomUUID } from 'node:crypto';
import { Code, ConnectError, type Interceptor } from '@connectrpc/connect';
import { Reason } from '../../gen/forms/v1/errors_pb.js';
import type { Log } from '../telemetry/log.ts';
import { failed } from './errors.ts';

/**
 * Logs each call by its method, code, duration and request id, never by what it carries; and makes
 * sure that only `ConnectError`s leave.
 *
 * Whatever else is thrown becomes `UNAVAILABLE` if it passes by itself, else `INTERNAL` with the
 * request id under which the log has the cause.
 */
export function logCalls({ log, now, describeTemporaryFault }: LogOptions): Interceptor {
  const warn = seldom(log, now);
  return (next) => async (req) => {
    const startedAt = now();
    const end = (error?: unknown): ConnectError | undefined => {
      const requestId = requestIdOf(req.header);
      const failure = error === undefined ? undefined : failureOf(error, requestId, req.signal);
      const method = `${req.service.typeName}/${req.method.name}`;
      const call = { method, ms: now() - startedAt, requestId };
      if (failure === undefined) log.debug({ ...call, code: 'ok' }, 'call');
      else logFailure({ ...call, code: Code[failure.code] }, failure);
      return failure;
    };
    try {
      const response = await next(req);
      if (response.stream) return { ...response, message: watched(response.message, end) };
      if (log.isLevelEnabled?.('debug') ?? true) end();
      return response;
    } catch (error) {
      throw end(error);
    }
  };

  function logFailure(call: object, failure: ConnectError): void {
    if (failure.code === Code.Internal) log.error({ ...call, err: failure.cause }, 'call failed');
    else if (failure.code === Code.Unavailable) warn({ ...call, err: failure.cause }, 'call failed');
    else log.debug(call, 'call refused');
  }

  /** Only ConnectErrors leave: any other error must not tell a stranger what went wrong inside. */
  function failureOf(error: unknown, requestId: string, signal: AbortSignal): ConnectError {
    if (error instanceof ConnectError) return error;
    if (signal.aborted) return new ConnectError('The caller has gone', Code.Canceled);
    const temporary = describeTemporaryFault(error);
    if (temporary !== undefined) {
      return failed(Reason.UNAVAILABLE, `${temporary}; try again soon`, {
        retryAfter: RETRY_AFTER_SECONDS,
        cause: error,
      });
    }
    return failed(Reason.INTERNAL, `Something went wrong inside; the log has it under ${requestId}`, {
      cause: error,
    });
  }
}

/**
 * Warns once a second at most, and counts what went unsaid: while the database is away or too slow, every
 * call fails for the same reason.
 */
function seldom(log: Log, now: () => number): (facts: object, message: string) => void {
  let warnedAt = Number.NEGATIVE_INFINITY;
  let unsaid = 0;
  return (facts, message) => {
    if (now() - warnedAt < WARN_EVERY_MS) {
      unsaid += 1;
      return;
    }
    log.warn({ ...facts, ...(unsaid > 0 && { unsaid }) }, message);
    warnedAt = now();
    unsaid = 0;
  };
}

const WARN_EVERY_MS = 1_000;

async function* watched<T>(messages: AsyncIterable<T>, end: EndOfCall): AsyncIterable<T> {
  try {
    yield* messages;
    end();
  } catch (error) {
    throw end(error);
  }
}

/** The request id that the caller gave, so that all logs name the call alike; a malformed one is replaced. */
function requestIdOf(header: Headers): string {
  const given = header.get('x-request-id');
  return given !== null && requestIdPattern.test(given) ? given : randomUUID();
}

const requestIdPattern = /^[\w.:-]{1,64}$/;

/** Long enough for a restart of the database or a burst of submissions to be over. */
const RETRY_AFTER_SECONDS = 2;

type EndOfCall = (error?: unknown) => ConnectError | undefined;

export type LogOptions = {
  log: Log;
  now: () => number;
  /** Says in a sentence why a call failed if the cause passes by itself; undefined for other errors. */
  describeTemporaryFault: (error: unknown) => string | undefined;
};
