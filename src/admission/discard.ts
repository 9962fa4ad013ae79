import { once } from 'node:events';
import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { bodyBounds } from './bounds.ts';
import type { Request } from './client.ts';

/**
 * Reads and drops the rest of a body, up to a bound and for a while: most clients of HTTP/1.1 read a reply only
 * after they have sent everything. Resolves to whether the end was reached, so that the connection can be kept.
 */
export async function discard(request: Request): Promise<boolean> {
  if (request.complete || request.destroyed) return request.complete;
  const most = maxDiscarded(request);
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
export function limitDiscarding(request: Request, reason: Unread): void {
  const bound = boundAfter[reason];
  if (bound !== undefined) bounds.set(request, bound);
}

/** How much of the rest of a refused body is dropped, where it is not as much as after any other answer. */
const bounds = new WeakMap<Request, number>();

const { discarded } = bodyBounds;

const boundAfter: Partial<Record<Unread, number>> = {
  // Nobody waits for it.
  'too slow': 0,
  'over budget': discarded.overBudgetBytes,
};

function maxDiscarded(request: Request): number {
  return bounds.get(request) ?? ('stream' in request ? discarded.http2Bytes : discarded.http1Bytes);
}

/** Why a body was not read to its end. */
export type Unread = 'too large' | 'too slow' | 'cut off' | 'over budget';
