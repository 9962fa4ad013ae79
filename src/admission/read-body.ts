import { once } from 'node:events';
import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { Code, type ConnectError } from '@connectrpc/connect';
import { Reason } from '../../gen/headlessforms/v1/errors_pb.js';
import { failed } from '../domain/errors/failure.ts';
import type { Admission } from './admission.ts';
import { BodyAccount, createArrivalWatches } from './body-account.ts';
import { bodyBounds, standardBounds } from './bounds.ts';
import { Count, type Request, type Response } from './client.ts';

/**
 * Counts the body of a request, as far as this module reads it, until its call ends. What is left of it
 * then is dropped up to a bound, beyond which the connection (or stream) is closed.
 */
export function countBody(request: Request, response: Response, admission: Admission): void {
  if (!hasBody(request)) return;
  const account = admission.body(request);
  request[accountKey] = account;
  // Both come once. `once` would keep more for each of thousands that wait.
  response.on('close', () => account.free());
  // Node's own listener would read on without a bound. The response of HTTP/2 finishes only when its stream closes.
  const answer = 'stream' in response ? response.stream : response;
  const finished = () => {
    // What a stream of HTTP/2 holds lives on until the next full collection, as Node's own handle of it does.
    answer.off('finish', finished);
    if (!request.complete) void discardOrDestroy(request, response);
  };
  answer.prependListener('finish', finished);
}

async function discardOrDestroy(request: Request, response: Response): Promise<void> {
  if (await discard(request)) return;
  for (const side of [request, response]) side.destroy();
}

/** The caller of a request has shown a key, so its body does not count as that of a stranger. */
export function setKnownCaller(request: Request): void {
  request[accountKey]?.setKnown();
}

/**
 * Reads a whole body of at most `limit` bytes. Throws the failure of one that is larger, arrives too slowly or does not
 * fit into the budget just now, and a `CutOff` if it ends early. Frees what is read of those.
 */
export async function readBody(request: Request, limit: number): Promise<Buffer> {
  const account = request[accountKey] ?? uncounted();
  const announced = Number(request.headers['content-length'] ?? limit);
  if (announced > limit) throw unread('too large', limit);
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  let content: Buffer = Buffer.alloc(0);
  let size = 0;
  let sizeBefore = 0;
  let finished = false;

  const rate = account.watch(() => finish('too slow'));
  const take = (chunk: Buffer) => {
    rate.received(chunk.length);
    if (size + chunk.length > limit) finish('too large');
    else if (!append(chunk)) finish('over budget');
    else if (size - sizeBefore > bodyBounds.sliceBytes) yieldToOthers();
  };
  /** Otherwise 2 MiB of each connection would be read before anything else goes on. */
  const yieldToOthers = () => {
    sizeBefore = size;
    request.pause();
    setImmediate(() => {
      if (!finished) request.resume();
    });
  };
  /**
   * The buffer grows with what has come, not with what was announced, so that nobody holds much more than they have
   * sent.
   */
  const append = (chunk: Buffer) => {
    const needed = size + chunk.length;
    // A small part of what the connection received would keep all of it.
    const isWhole = size === 0 && chunk.buffer.byteLength <= 2 * chunk.length;
    if (needed > content.length) {
      const length = isWhole ? needed : Math.max(needed, Math.min(Math.ceil(GROWTH * needed), announced));
      if (!account.hold(length - content.length)) return false;
      content = isWhole ? chunk : grown(content, length);
    }
    if (!isWhole) chunk.copy(content, size);
    size = needed;
    return true;
  };
  const end = () => {
    finish(content.subarray(0, size));
  };
  const cutOff = () => finish('cut off');
  const finish = (result: Buffer | Unread) => {
    finished = true;
    rate.stop();
    // Now, not when it is collected: every request closes after its end, and the listeners would make an error then that
    // nobody reads.
    request
      .off('data', take)
      .off('end', end)
      .off('error', cutOff)
      .off('aborted', cutOff)
      .off('close', cutOff);
    if (typeof result === 'string') {
      limitDiscarding(request, result);
      // Chunks that still arrive would pile up faster than they are collected.
      request.pause();
      content = Buffer.alloc(0);
      account.free();
      reject(unread(result, limit));
    } else resolve(result);
  };

  request
    .on('data', take)
    .on('end', end)
    .on('error', cutOff)
    // HTTP/2 ends a stream that was cut off like a complete one, but emits `aborted` before.
    .on('aborted', cutOff)
    .on('close', cutOff);
  return promise;
}

function grown(content: Buffer, length: number): Buffer {
  const larger = Buffer.allocUnsafeSlow(length);
  content.copy(larger);
  return larger;
}

/**
 * The parts of a body as they arrive, for those who do not keep them. Throws as `readBody` does, but that it does not
 * count the bytes; the budget must have room for `held`, which count until the body is read. Time that the reader
 * takes does not count as the sender's.
 */
export async function* readParts(request: Request, held: number): AsyncGenerator<Buffer> {
  const account = request[accountKey] ?? uncounted();
  if (!account.hold(held)) {
    limitDiscarding(request, 'over budget');
    throw unread('over budget');
  }
  // What is left of a body that is refused is for `discard`, so the request stays as it is.
  const parts: AsyncIterator<Buffer> = request.iterator({ destroyOnReturn: false });
  let slow = () => {};
  const rate = account.watch(() => slow());
  const next = () =>
    new Promise<IteratorResult<Buffer>>((resolve, reject) => {
      slow = () => {
        limitDiscarding(request, 'too slow');
        reject(unread('too slow'));
      };
      parts.next().then(resolve, () => reject(unread('cut off')));
    });
  try {
    for (;;) {
      rate.isWaiting = true;
      const part = await next();
      rate.isWaiting = false;
      if (part.done === true) break;
      rate.received(part.value.length);
      yield part.value;
    }
    // HTTP/2 ends a stream that was cut off like a complete one.
    if (request.aborted) throw unread('cut off');
  } finally {
    rate.stop();
    account.free();
    void parts.return?.();
  }
}

/**
 * Counts that many bytes more as held by a body that was read, such as what it is decompressed to, until its call ends;
 * fewer than none gives some back. Throws if the budget has no room for them.
 */
export function holdMore(request: Request, bytes: number): void {
  if (request[accountKey]?.hold(bytes) === false) throw unread('over budget');
}

/** The error of a body that could not be read; `limit` is in bytes. */
function unread(reason: Unread, limit = 0): Error {
  switch (reason) {
    case 'cut off':
      return new CutOff();
    case 'too large':
      return bodyTooLarge(limit);
    case 'too slow':
      return failed(Reason.BAD_REQUEST, 'The request took too long to arrive', {
        code: Code.DeadlineExceeded,
      });
    case 'over budget':
      return failed(Reason.UNAVAILABLE, 'Too many requests are arriving at once; try again soon');
    default:
      return reason satisfies never;
  }
}

/** The error of a body that is larger than `limit` bytes. */
export function bodyTooLarge(limit: number): ConnectError {
  return failed(Reason.TOO_LARGE, `The body is larger than ${limit} bytes`);
}

/** The sender closed the connection before the end of the body, so that nobody reads an answer. */
export class CutOff extends Error {
  override message = 'The request was cut off';
}

/** A property rather than a WeakMap, whose short-lived entries cost more to collect than a request to serve. */
const accountKey = Symbol('body account');

declare module 'node:http' {
  interface IncomingMessage {
    [accountKey]?: BodyAccount;
  }
}

declare module 'node:http2' {
  interface Http2ServerRequest {
    [accountKey]?: BodyAccount;
  }
}

/** For requests that come from no listener. */
function uncounted(): BodyAccount {
  return new BodyAccount(unbounded, () => undefined);
}

const unbounded = {
  arrivals: createArrivalWatches(standardBounds.arrival),
  strangers: new Count(Number.POSITIVE_INFINITY),
  known: new Count(Number.POSITIVE_INFINITY),
  onRefused: () => undefined,
};

/** By a fourth: what is empty of the buffer counts, too. All copies of a body are some five times its bytes. */
const GROWTH = 1.25;

/** Whether a request announces a body. */
export function hasBody(request: Request): boolean {
  if ('stream' in request) return !request.stream.endAfterHeaders;
  const { 'content-length': length, 'transfer-encoding': encoding } = request.headers;
  return encoding !== undefined || (length !== undefined && length !== '0');
}

/**
 * Reads and drops the rest of a body, up to a bound and for a while: most clients of HTTP/1.1 read a reply only
 * after they have sent everything. Resolves to whether the end was reached, so that the connection can be kept.
 */
export async function discard(request: Request): Promise<boolean> {
  if (request.complete || request.destroyed) return request.complete;
  const usual = 'stream' in request ? discarded.http2Bytes : discarded.http1Bytes;
  const most = bounds.get(request) ?? usual;
  if (most === 0 || Number(request.headers['content-length']) > most) return false;
  // Node drops what nobody has begun to read by itself, without a bound: this begins.
  request.read(0);
  // A paused request has paused its stream. It starts it by asking for more, but not if it had asked before the pause.
  if ('stream' in request) request.stream.resume();
  const timeIsUp = AbortSignal.timeout(discarded.ms);
  return Promise.race([readUpTo(most, request), once(timeIsUp, 'abort').then(() => false)]);
}

async function readUpTo(most: number, request: Request): Promise<boolean> {
  let size = 0;
  try {
    for await (const part of request.iterator({ destroyOnReturn: false })) {
      size += part.length;
      if (size > most) return false;
      await yieldToEventLoop();
    }
    return request.complete;
  } catch {
    return false;
  }
}

/** Lowers how much of a body is dropped, after the reason for which the rest of it is not read. */
function limitDiscarding(request: Request, reason: Unread): void {
  const bound = boundAfter[reason];
  if (bound !== undefined) bounds.set(request, bound);
}

/** How much of the rest of a refused body is dropped, where it is not as much as after any other answer. */
const bounds = new WeakMap<Request, number>();

const { discarded } = bodyBounds;

const boundAfter: Partial<Record<Unread, number>> = {
  // A slow sender is cut off at once: it would hold the connection for nothing.
  'too slow': 0,
  'over budget': discarded.overBudgetBytes,
};

/** Why a body was not read to its end. */
type Unread = 'too large' | 'too slow' | 'cut off' | 'over budget';
