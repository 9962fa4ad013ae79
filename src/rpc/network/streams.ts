import {
  Code,
  ConnectError,
  type ConnectRouter,
  createConnectRouter,
  type HandlerContext,
  type Interceptor,
} from '@connectrpc/connect';
import { universalRequestFromNodeRequest, universalResponseToNodeResponse } from '@connectrpc/connect-node';
import { longestCallMs } from '../../domain/limits/limits.ts';
import { isPlain, limitsOf } from '../../domain/methods.ts';
import type { Served } from '../registry.ts';
import {
  checkedGzip,
  type Received,
  receiveMessage,
  receiveParts,
  refuseAnnounced,
  unreadable,
} from './message.ts';
import {
  connectJson,
  encodeEnvelope,
  inBase64,
  keepPrintable,
  type Protocol,
  spokenBy,
  timeoutIn,
} from './protocols.ts';
import type { Formats } from './unary.ts';

/** Connect's handlers of all methods that take or answer with a stream, behind the same gate and interceptors. */
export function createStreamHandlers(
  { methods, interceptors, gate, callLog }: Served,
  formats: Formats,
): readonly StreamHandler[] {
  const router = createConnectRouter();
  const requestGate = async (context: HandlerContext) => {
    const { method, requestHeader: header, values, signal, responseTrailer } = context;
    keepPrintable(responseTrailer);
    try {
      refuseAnnounced(method, header);
      await gate(method, header, values);
    } catch (error) {
      throw callLog.fail({ method, header, contextValues: values, signal }, error);
    }
  };
  for (const { method, kind, impl } of methods) {
    if (kind === 'unary') continue;
    router.rpc(method, impl, {
      ...formats,
      maxTimeoutMs: longestCallMs.stream,
      readMaxBytes: limitsOf(method).readMaxBytes,
      acceptCompression: [checkedGzip(method)],
      requestGate,
      interceptors: [...interceptors, refuseUnreadable],
    });
  }
  return router.handlers;
}

/**
 * Answers a call with a stream of messages by Connect's own way between Node and its handlers. What is one message of
 * its caller is received and checked as that of a unary call is.
 */
export async function answerStream(
  handler: StreamHandler,
  { request, response, values }: Received,
): Promise<void> {
  const { method } = handler;
  const call = universalRequestFromNodeRequest(request, response, undefined, values);
  const { header } = call;
  const spoken = spokenBy(header.get('content-type')) ?? connectJson;
  const { protocol } = spoken;
  shortenDeadline(protocol, header);
  if (isPlain(method)) header.set(protocol.acceptEncoding, 'identity');
  const readable = { method, spoken, encoding: header.get(protocol.encoding), values, request, response };
  const body = method.methodKind === 'server_streaming' ? envelopeOf(readable) : receiveParts(readable);
  if (!protocol.isText) {
    await universalResponseToNodeResponse(await handler({ ...call, body }), response);
    return;
  }
  header.set('content-type', `application/grpc-web+${spoken.codec}`);
  header.delete('content-length');
  const answer = await handler({ ...call, body });
  const inText = new Headers(answer.header);
  inText.set('content-type', `application/grpc-web-text+${spoken.codec}`);
  const text = answer.body && base64Of(answer.body);
  await universalResponseToNodeResponse({ ...answer, header: inText, ...(text && { body: text }) }, response);
}

async function* envelopeOf(call: Parameters<typeof receiveMessage>[0]): AsyncGenerator<Uint8Array> {
  const { bytes } = await receiveMessage(call);
  yield encodeEnvelope(0, bytes);
}

/** Each part by itself, so that a stream can be read as it comes. */
async function* base64Of(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const part of body) yield inBase64(part);
}

/** Connect refuses deadlines that are longer than its timers hold. */
function shortenDeadline(protocol: Protocol, header: Headers): void {
  if (timeoutIn(protocol, header, longestCallMs.stream).timeoutMs !== longestCallMs.stream) return;
  const inUnits =
    protocol.name === 'connect' ? String(longestCallMs.stream) : `${longestCallMs.stream / 1000}S`;
  header.set(protocol.timeout, inUnits);
}

/** Throws BAD_REQUEST for messages that can't be read, which Connect calls an error of the service. */
const refuseUnreadable: Interceptor = (next) => (req) =>
  next(req.stream ? { ...req, message: readable(req.message) } : req);

async function* readable<T>(messages: AsyncIterable<T>): AsyncGenerator<T> {
  try {
    yield* messages;
  } catch (error) {
    throw error instanceof ConnectError && error.code === Code.Internal ? unreadable(error) : error;
  }
}

type StreamHandler = ConnectRouter['handlers'][number];
