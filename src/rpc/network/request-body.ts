import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerRequest } from 'node:http2';
import type { DescMethod } from '@bufbuild/protobuf';
import { Code, ConnectError, type ContextValues } from '@connectrpc/connect';
import { Reason } from '../../../gen/forms/v1/errors_pb.js';
import type { Unread } from '../../body/discard.ts';
import { readBody, readParts, setKnownCaller, UnreadError } from '../../body/read-body.ts';
import { limitsOf, type MessageLimits } from '../../domain/limits/message-limits.ts';
import { callerKey } from '../context.ts';
import { failed } from '../errors.ts';
import { fromText, TEXT_OVERHEAD, textKey } from './grpc-web-text.ts';
import { ENVELOPE_HEAD } from './limits.ts';
import { openBody, refuseUnreadableIn, tooLarge, type UnaryCall } from './message-check.ts';
import { WholeBody } from './whole-body.ts';

/**
 * The body of a unary call, read when its handler asks for it, which is after the gate, and decompressed. Fails if
 * it is larger or holds more than the method allows its caller, or is cut off.
 */
export function bodyOf(
  call: Omit<UnaryCall, 'limits'>,
  contextValues: ContextValues,
  request: Request,
  response: ServerResponse,
): WholeBody {
  return new WholeBody(async () => {
    const limits = limitsFor(call.method, contextValues);
    return openBody(await receive(limits, contextValues, request, response), { ...call, limits });
  });
}

/**
 * The body of a call with one message that is answered by a stream. The message is parsed here once more than
 * Connect does, which says of one that can't be read that the service failed.
 */
export async function* messageOf(
  method: DescMethod,
  contextValues: ContextValues,
  request: Request,
  response: ServerResponse,
): AsyncGenerator<Uint8Array> {
  const limits = limitsFor(method, contextValues);
  const body = await receive(limits, contextValues, request, response);
  const header = headersOf(request);
  const opened = await openBody(body, { method, header, encoding: undefined, limits });
  refuseUnreadableIn(opened, method, header);
  yield opened;
}

/** The body of a call with many messages, of which its handler holds one at a time. */
export async function* messagesOf(
  method: DescMethod,
  contextValues: ContextValues,
  request: Request,
): AsyncGenerator<Uint8Array> {
  const { readMaxBytes } = limitsFor(method, contextValues);
  if (isKnown(contextValues)) setKnownCaller(request);
  try {
    yield* readParts(request, readMaxBytes);
  } catch (error) {
    throw error instanceof UnreadError ? notReceived(error.reason, readMaxBytes) : error;
  }
}

async function receive(
  { readMaxBytes }: MessageLimits,
  contextValues: ContextValues,
  request: Request,
  response: ServerResponse,
): Promise<Uint8Array> {
  if (isKnown(contextValues)) setKnownCaller(request);
  const isText = contextValues.get(textKey);
  const most = (readMaxBytes + ENVELOPE_HEAD) * (isText ? TEXT_OVERHEAD : 1);
  const body = await readBody(request, Math.ceil(most));
  if (typeof body !== 'string') return isText ? fromText(body) : body;
  if (body === 'cut off') response.destroy();
  throw notReceived(body, readMaxBytes);
}

function notReceived(reason: Unread, readMaxBytes: number): ConnectError {
  switch (reason) {
    case 'cut off':
      return new ConnectError('The request was cut off', Code.Canceled);
    case 'too large':
      return tooLarge(readMaxBytes);
    case 'too slow':
      return failed(Reason.BAD_REQUEST, 'The request took too long to arrive', {
        code: Code.DeadlineExceeded,
      });
    case 'over budget':
      return failed(Reason.UNAVAILABLE, 'Too many requests are arriving at once; try again soon', {
        retryAfter: 1,
      });
    default:
      return reason satisfies never;
  }
}

function limitsFor(method: DescMethod, contextValues: ContextValues): MessageLimits {
  return limitsOf(method, { keyless: !isKnown(contextValues) });
}

function isKnown(contextValues: ContextValues): boolean {
  return contextValues.get(callerKey)?.keyId !== undefined;
}

/** Without the names of HTTP/2's own, such as `:path`. */
export function headersOf({ headers }: Request): Headers {
  const of = new Headers();
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined || name.startsWith(':')) continue;
    of.set(name, Array.isArray(value) ? value.join(', ') : value);
  }
  return of;
}

/**
 * Takes the encoding of a whole body, which Connect's unary calls have, from their headers: it is decompressed
 * here, where the limits of its caller are known.
 */
export function takeEncoding({ method }: Request, header: Headers): 'gzip' | undefined {
  if (method !== 'POST' || header.get('content-encoding') !== 'gzip') return undefined;
  header.delete('content-encoding');
  header.delete('content-length');
  return 'gzip';
}

type Request = IncomingMessage | Http2ServerRequest;
