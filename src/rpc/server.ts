import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import {
  Code,
  ConnectError,
  type ConnectRouter,
  type ContextValues,
  createConnectRouter,
} from '@connectrpc/connect';
import type { UniversalHandler } from '@connectrpc/connect/protocol';
import { universalRequestFromNodeRequest, universalResponseToNodeResponse } from '@connectrpc/connect-node';
import type { Logger } from 'pino';
import { inPieces, wholeOf } from './bytes.ts';
import { callLimits } from './limits.ts';

/**
 * Serves RPCs on Node's servers, HTTP/1.1 and HTTP/2. What names no RPC goes to `fallback`.
 *
 * Streams take Connect's own way between Node and its handlers. For unary calls, nearly all there are,
 * that way is a good part of what a call costs (iterators over both bodies, an abort with a stack trace
 * after each answer), so here a request is read whole before its handler begins, and its answer is
 * written at once.
 */
export function createRpcHandler({ routes, contextValues, fallback, log }: RpcHandlerOptions): RpcHandler {
  const router = createConnectRouter();
  routes(router);
  const handlers = new Map(router.handlers.map((handler) => [handler.requestPath, handler]));

  return (request, response) => {
    const handler = handlers.get(request.url?.split('?', 1).join() ?? '');
    if (handler === undefined) return fallback(request, response);
    const answer = handler.method.methodKind === 'unary' ? answerWhole : answerStream;
    // Node gives HTTP/2 the methods of HTTP/1.1, with types that only differ in their overloads.
    answer(handler, request, response as ServerResponse, contextValues(request)).catch((error: unknown) => {
      response.destroy();
      if (ConnectError.from(error).code === Code.Aborted) return;
      log.error({ err: error, rpc: handler.requestPath }, 'A call could not be answered');
    });
  };
}

async function answerWhole(
  handler: UniversalHandler,
  request: Request,
  response: ServerResponse,
  contextValues: ContextValues,
): Promise<void> {
  const caller = new AbortController();
  let answered = false;
  const gone = () => {
    if (!answered) caller.abort(new ConnectError('The caller has gone', Code.Canceled));
  };
  request.on('error', gone);
  response.once('close', gone);
  const pieces = await readWhole(request, response);
  if (pieces === undefined) return;

  const answer = await handler({
    httpVersion: request.httpVersion,
    method: request.method ?? '',
    url: `http://localhost${request.url}`,
    header: headersOf(request),
    body: inPieces(pieces),
    signal: caller.signal,
    contextValues,
  });
  const body = answer.body === undefined ? '' : await wholeOf(answer.body);
  answered = true;
  response.writeHead(answer.status, Object.fromEntries(answer.header ?? []));
  if (answer.trailer !== undefined) response.addTrailers(Object.fromEntries(answer.trailer));
  response.end(body);
}

async function answerStream(
  handler: UniversalHandler,
  request: Request,
  response: ServerResponse,
  contextValues: ContextValues,
): Promise<void> {
  const answer = await handler(universalRequestFromNodeRequest(request, response, undefined, contextValues));
  await universalResponseToNodeResponse(answer, response);
}

/**
 * The bytes of a request's body, in pieces; undefined if the caller goes before its end. Of one that is
 * too large only the beginning, which is too large too: its handler refuses it in its own protocol.
 */
function readWhole(request: Request, response: ServerResponse): Promise<Uint8Array[] | undefined> {
  const { promise, resolve } = Promise.withResolvers<Uint8Array[] | undefined>();
  const chunks: Uint8Array[] = [];
  let size = 0;
  request.on('data', (chunk: Uint8Array) => {
    // Most clients look at an answer only once they have sent everything, but there is a limit to that.
    if (size > 2 * MAX_WIRE_BYTES) for (const side of [request, response]) side.destroy();
    if (size <= MAX_WIRE_BYTES) chunks.push(chunk);
    size += chunk.length;
    if (size > MAX_WIRE_BYTES) resolve(chunks);
  });
  // HTTP/2 ends a stream that was cut off as it ends a whole one, but says so before.
  request.once('aborted', () => resolve(undefined));
  request.once('end', () => resolve(chunks));
  request.once('close', () => resolve(undefined));
  return promise;
}

/** Without the names of HTTP/2's own, such as `:path`. */
function headersOf({ headers }: Request): Headers {
  const of = new Headers();
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined || name.startsWith(':')) continue;
    of.set(name, Array.isArray(value) ? value.join(', ') : value);
  }
  return of;
}

/** The largest message, with the head that gRPC puts before it. */
const MAX_WIRE_BYTES = callLimits.readMaxBytes + 5;

export type RpcHandler = (request: Request, response: Response) => void;

type Request = IncomingMessage | Http2ServerRequest;
type Response = ServerResponse | Http2ServerResponse;

export type RpcHandlerOptions = {
  routes: (router: ConnectRouter) => void;
  /** What a call begins with. */
  contextValues: (request: Request) => ContextValues;
  fallback: RpcHandler;
  log: Logger;
};
