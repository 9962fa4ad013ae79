import {
  type DescField,
  type DescMessage,
  type DescMethod,
  isFieldSet,
  isMessage,
  type Message,
} from '@bufbuild/protobuf';
import { DurationSchema, type Value, ValueSchema } from '@bufbuild/protobuf/wkt';
import { Code, ConnectError, type ContextValues, type Interceptor } from '@connectrpc/connect';
import { FailureSchema, NextCall, Reason } from '../../gen/headlessforms/v1/errors_pb.js';
import { networkOf } from '../domain/addresses/ip-address.ts';
import { failed, limitOf, nameOf, reasonOf, withFailure } from '../domain/errors/failure.ts';
import { describeReceived } from '../domain/errors/violations.ts';
import { requestIdFrom } from '../domain/ids.ts';
import { noteRefusal } from '../telemetry/access-log.ts';
import { type Log, throttledWarning, type Warn } from '../telemetry/log.ts';
import { clientAddressOf, factsOf } from './context.ts';

/**
 * Logs each call by its method, code, duration and request id, never by what it carries; and makes
 * sure that only `ConnectError`s leave.
 *
 * Whatever else is thrown becomes `UNAVAILABLE` if it is temporary, else `INTERNAL` with the
 * request id under which the log has the cause.
 */
export function createCallLog({ log, now, describeTemporaryFault, onLimit }: LogOptions): CallLog {
  const warn = throttledWarning(log, now, WARN_EVERY_MS);
  const refusals = new Map<string, Warn>();

  function end(call: LoggedCall, startedAt: number): void {
    log.debug({ ...loggedOf(call, startedAt), code: 'ok' }, 'call');
  }

  function fail(call: LoggedCall, startedAt: number, error: unknown): ConnectError {
    const facts = loggedOf(call, startedAt);
    const failure = failureOf(error, facts.requestId, call);
    const line = factsOf({ values: call.contextValues }).line;
    // What a route answers is in its status.
    if (line?.route !== undefined) line.code = Code[failure.code];
    noteRefusal(line, nameOf(reasonOf(failure)));
    logFailure({ ...facts, code: Code[failure.code] }, failure);
    const limit = limitOf(failure);
    if (limit !== undefined)
      noteLimit(limit, { ...facts, client: networkOf(clientAddressOf({ values: call.contextValues })) });
    return failure;
  }

  function loggedOf({ method, header, contextValues: values }: LoggedCall, startedAt: number) {
    const name = `${method.parent.typeName}/${method.name}`;
    const requestId = requestIdFrom(header.get('x-request-id'));
    const ownRequestId = factsOf({ values }).line?.ownRequestId;
    return { method: name, ms: now() - startedAt, requestId, ownRequestId };
  }

  async function* watched<T>(
    messages: AsyncIterable<T>,
    call: LoggedCall,
    startedAt: number,
  ): AsyncIterable<T> {
    try {
      yield* messages;
      // Methods end when nobody waits any more, which would read as the end of all there is.
      if (isLate(call.signal)) throw call.signal.reason;
      end(call, startedAt);
    } catch (error) {
      throw fail(call, startedAt, error);
    }
  }

  return {
    // Not async: calls that wait would keep its frame.
    interceptor: (next) => (req) => {
      const startedAt = now();
      const succeeded = (response: Response) => {
        if (response.stream) return { ...response, message: watched(response.message, req, startedAt) };
        if (log.isLevelEnabled?.('debug') ?? true) end(req, startedAt);
        return response;
      };
      const failed = (error: unknown) => {
        const failure = fail(req, startedAt, error);
        if (!req.stream) addReceived(failure, req.method.input, req.message);
        throw failure;
      };
      return next(req).then(succeeded, failed);
    },
    fail: (call, error) => fail(call, now(), error),
  };

  function noteLimit(limit: string, call: object): void {
    onLimit?.(limit);
    const note = refusals.get(limit) ?? throttledWarning(log, now, LIMIT_EVERY_MS);
    refusals.set(limit, note);
    note({ ...call, limit }, 'A limit refused a call.', 'info');
  }

  function logFailure(call: object, failure: ConnectError): void {
    if (failure.code === Code.Internal) log.error({ ...call, err: failure.cause }, 'call failed');
    else if (failure.code === Code.Unavailable) warn({ ...call, err: failure.cause }, 'call failed');
    else log.debug(call, 'call refused');
  }

  /** Only ConnectErrors leave: the text of any other error could reveal internals. */
  function failureOf(error: unknown, requestId: string, { method, signal }: LoggedCall): ConnectError {
    if (error instanceof ConnectError) return withFailure(error);
    if (isLate(signal)) return withFailure(signal.reason);
    if (signal.aborted) return withFailure(new ConnectError('The caller has gone', Code.Canceled));
    const temporary = describeTemporaryFault(error, method);
    if (temporary !== undefined) {
      const { message, nextCall = NextCall.SAME } = temporary;
      return failed(Reason.UNAVAILABLE, message, { retryAfter: RETRY_AFTER_SECONDS, nextCall, cause: error });
    }
    const message = `Something went wrong on our side. Reference: ${requestId}`;
    return failed(Reason.INTERNAL, message, { cause: error });
  }
}

/** Whether the deadline of a call has passed, which Connect gives as the reason. */
function isLate(signal: AbortSignal): boolean {
  return signal.aborted && ConnectError.from(signal.reason).code === Code.DeadlineExceeded;
}

/** Adds what came in the request to each violation of a failed call, in place. */
function addReceived(failure: ConnectError, schema: DescMessage, request: Message): void {
  for (const detail of failure.details) {
    if (!('desc' in detail) || detail.desc !== FailureSchema) continue;
    const { violations } = detail.value;
    for (const violation of Array.isArray(violations) ? violations : []) {
      violation.received ||= describeReceived(violation.path, valueAt(schema, request, violation.path));
    }
  }
}

/** What is at the path of a request's field, as JSON; undefined if there is nothing. */
function valueAt(schema: DescMessage, request: Message, path: string): unknown {
  let value: unknown = request;
  let inside: DescMessage | undefined = schema;
  let field: DescField | undefined;
  for (const token of path.match(/[^.[\]]+/g) ?? []) {
    if (typeof value !== 'object' || value === null) return undefined;
    if (inside !== undefined && isMessage(value)) {
      field = inside.fields.find(({ name }) => name === token);
      if (field === undefined) return undefined;
      value = fieldOf(value, field);
      inside = field.message;
    } else value = Object.hasOwn(value, token) ? Reflect.get(value, token) : undefined;
  }
  return jsonOf(value, field);
}

function fieldOf(message: Message, field: DescField): unknown {
  if (!isFieldSet(message, field)) return undefined;
  const { localName, oneof } = field;
  return oneof === undefined ? Reflect.get(message, localName) : Reflect.get(message, oneof.localName).value;
}

/** Enums have other names in each interface: only numbers that have no name are told. */
function jsonOf(value: unknown, field: DescField | undefined): unknown {
  if (value instanceof Uint8Array) return undefined;
  if (typeof value === 'number' && field?.enum?.value[value] !== undefined) return undefined;
  if (isMessage(value, ValueSchema)) return scalarOf(value);
  return isMessage(value, DurationSchema) ? Number(value.seconds) + value.nanos / 1e9 : value;
}

/** Of lists and objects only that they are such matters. `toJson` would throw for numbers that JSON can't hold. */
function scalarOf({ kind }: Value): unknown {
  if (kind.case === 'listValue') return kind.value.values;
  if (kind.case === 'structValue') return kind.value.fields;
  return kind.case === 'nullValue' ? null : kind.value;
}

/** While the database is away or too slow, every call fails for the same reason. */
const WARN_EVERY_MS = 1_000;

/** Of one limit, no matter who meets it. */
const LIMIT_EVERY_MS = 60_000;

/** Long enough for a restart of the database or a burst of submissions to be over. */
const RETRY_AFTER_SECONDS = 2;

export type CallLog = {
  interceptor: Interceptor;
  /** Logs a call that fails before it comes to the interceptors, and returns what its caller gets. */
  fail(call: LoggedCall, error: unknown): ConnectError;
};

type Response = Awaited<ReturnType<ReturnType<Interceptor>>>;

type LoggedCall = { method: DescMethod; header: Headers; contextValues: ContextValues; signal: AbortSignal };

export type LogOptions = {
  log: Log;
  now: () => number;
  /** Why a call failed, in a sentence, and what to do, if the cause is temporary; undefined for other errors. */
  describeTemporaryFault: (
    error: unknown,
    method: DescMethod,
  ) => { message: string; nextCall?: NextCall } | undefined;
  /** Counts that a limit had no room for a call. */
  onLimit?: ((limit: string) => void) | undefined;
};
