import { promisify } from 'node:util';
import zlib from 'node:zlib';
import {
  type DescMethod,
  type DescMethodUnary,
  fromBinary,
  fromJson,
  type Message,
  toBinary,
  toJsonString,
} from '@bufbuild/protobuf';
import { MethodOptions_IdempotencyLevel as IdempotencyLevel } from '@bufbuild/protobuf/wkt';
import { Code, ConnectError, type ConnectRouterOptions } from '@connectrpc/connect';
import { inTimeSlice } from '../../admission/time-slice.ts';
import { withFailure } from '../../domain/errors/failure.ts';
import { longestCallMs } from '../../domain/limits/limits.ts';
import { isPlain } from '../../domain/methods.ts';
import { type Arrival, arrivalKey, type MethodCall } from '../method-calls.ts';
import type { Served } from '../registry.ts';
import { messageIn, type Received, receiveMessage, refuseAnnounced, unreadable } from './message.ts';
import { type Answer, type Reply, type Spoken, spokenBy, spokenInQuery, timeoutIn } from './protocols.ts';

/**
 * Answers a unary call of any protocol as what it is: one message and one answer. The message is received once the
 * gate has let the call pass. One that can't be read is its caller's mistake, where gRPC's libraries say `INTERNAL`.
 *
 * Connect's handlers take every call for a stream: those of gRPC pass it through a chain of async iterators, which
 * halves the rate of accepting, and those of Connect make signals, headers and iterators that cost a fifth of it.
 */
export async function answerUnary(rpc: UnaryRpc, received: UnaryRequest): Promise<Answer> {
  const { method, call, callLog, formats } = rpc;
  const { request, values, caller } = received;
  const { url = '' } = request;
  const query = request.method === 'GET' ? new URL(url, 'http://localhost').searchParams : undefined;
  const hasNoEffects = method.idempotency === IdempotencyLevel.NO_SIDE_EFFECTS;
  if (query ? !hasNoEffects : request.method !== 'POST') return refusedWith(405);
  const header = headersOf(request);
  const spoken = query ? spokenInQuery(query) : spokenBy(header.get('content-type'));
  if (spoken === undefined || spoken.protocol.isStream) return refusedWith(415);

  const { protocol, codec } = spoken;
  const timeout = timeoutIn(protocol, header, longestCallMs.unary);
  const deadline = abortAfter(timeout.timeoutMs, caller);
  const endsAt = timeout.timeoutMs === undefined ? undefined : performance.now() + timeout.timeoutMs;
  const arrival: Arrival = { protocolName: protocol.name, endsAt };
  values.set(arrivalKey, arrival);
  const encoding = query ? query.get('compression') : header.get(protocol.encoding);
  const started = {
    service: method.parent,
    method,
    requestMethod: request.method ?? '',
    url: `http://localhost${url}`,
    signal: caller.signal,
    header,
    contextValues: values,
  };
  let reply: Reply;
  try {
    const message = await receive(rpc, { ...received, header, query, spoken, encoding, timeout }).catch(
      (error: unknown) => {
        throw callLog.fail(started, error);
      },
    );
    const output = await call({ ...started, stream: false, message });
    if (output.stream) throw new TypeError(`${method.name} answered with a stream`);
    // Calls that wait for the same row go on in the same turn of the event loop.
    const content = await inTimeSlice(() =>
      codec === 'proto'
        ? toBinary(method.output, output.message)
        : encoder.encode(toJsonString(method.output, output.message, formats.jsonOptions)),
    );
    reply = { header: output.header, trailer: output.trailer, content };
  } catch (thrown) {
    const error = thrown instanceof ConnectError ? withFailure(thrown) : callLog.fail(started, thrown);
    const { header = new Headers(), trailer = new Headers() } = arrival.context?.answer() ?? {};
    reply = { header, trailer, error, content: protocol.contentOf(error) };
  } finally {
    clearTimeout(deadline);
  }
  if (!isPlain(method) && takesGzip(header.get(protocol.acceptEncoding), encoding)) await compress(reply);
  return protocol.answer(reply, codec);
}

/** The message of a call, once it is known that it may be made. */
async function receive(
  { method, gate, formats }: UnaryRpc,
  { header, query, spoken, encoding, timeout, ...received }: Begun,
): Promise<Message> {
  const { values, caller } = received;
  refuseAnnounced(method, header, spoken);
  await gate(method, header, values);
  if (encoding !== null && !encodings.has(encoding)) {
    const problem = `unknown compression "${encoding}": supported encodings are gzip`;
    throw new ConnectError(problem, Code.Unimplemented, { [spoken.protocol.acceptEncoding]: 'gzip' });
  }
  if (timeout.error !== undefined) throw timeout.error;
  const call = { ...received, method, spoken, encoding };
  const { bytes, json } = query ? await messageIn(query, call) : await receiveMessage(call);
  // A time-out of nothing is over by now, and a caller who has gone meanwhile waits for nothing.
  caller.signal.throwIfAborted();
  try {
    return json === undefined
      ? fromBinary(method.input, bytes, formats.binaryOptions)
      : fromJson(method.input, json, formats.jsonOptions);
  } catch (error) {
    throw json === undefined ? unreadable(error) : ConnectError.from(error, Code.InvalidArgument);
  }
}

const encodings = new Set(['identity', 'gzip']);
const encoder = new TextEncoder();

/** Whether the answer may be compressed: as the caller accepts, or else as the message is. */
function takesGzip(accepted: string | null, encoding: string | null): boolean {
  if (!accepted) return encoding === 'gzip';
  return accepted.split(',').some((name) => name.trim() === 'gzip');
}

async function compress(reply: Reply): Promise<void> {
  reply.encoding = 'gzip';
  if (reply.content.length < MIN_COMPRESSED_BYTES) return;
  reply.content = await zip(reply.content);
  reply.isCompressed = true;
}

const zip = promisify(zlib.gzip);

/** Smaller answers are not worth the time. */
const MIN_COMPRESSED_BYTES = 1024;

/** Aborts a call that takes longer, at once if it has no time at all. */
function abortAfter(ms: number | undefined, caller: AbortController): NodeJS.Timeout | undefined {
  const abort = () => caller.abort(new ConnectError('the operation timed out', Code.DeadlineExceeded));
  if (ms === 0) abort();
  return ms ? setTimeout(abort, ms) : undefined;
}

/** Without the names of HTTP/2's own, such as `:path`. */
function headersOf({ headers }: UnaryRequest['request']): Headers {
  const of = new Headers();
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined || name.startsWith(':')) continue;
    of.set(name, Array.isArray(value) ? value.join(', ') : value);
  }
  return of;
}

/** The answer to what is no call. */
function refusedWith(status: number): Answer {
  return { status, header: new Headers(), body: new Uint8Array() };
}

/** A method and what its calls pass. */
export type UnaryRpc = Pick<Served, 'gate' | 'callLog'> & {
  method: UnaryMethod;
  call: MethodCall;
  formats: Formats;
};

export type UnaryMethod = DescMethod & DescMethodUnary;

/** How messages are read and written. */
export type Formats = Pick<ConnectRouterOptions, 'binaryOptions' | 'jsonOptions'>;

/** `caller` is aborted when nobody waits for the answer any more. */
type UnaryRequest = Received & { caller: AbortController };

type Begun = UnaryRequest & {
  header: Headers;
  query: URLSearchParams | undefined;
  spoken: Spoken;
  encoding: string | null;
  timeout: ReturnType<typeof timeoutIn>;
};
