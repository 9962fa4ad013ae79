import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import type { DescMethod } from '@bufbuild/protobuf';
import {
  Code,
  ConnectError,
  type ConnectRouter,
  type ContextValues,
  createConnectRouter,
} from '@connectrpc/connect';
import type { UniversalHandler, UniversalServerResponse } from '@connectrpc/connect/protocol';
import { errorToJsonBytes } from '@connectrpc/connect/protocol-connect';
import { parseTimeout as parseGrpcTimeout, setTrailerStatus } from '@connectrpc/connect/protocol-grpc';
import { universalRequestFromNodeRequest, universalResponseToNodeResponse } from '@connectrpc/connect-node';
import type { Logger } from 'pino';
import { Reason } from '../../../gen/forms/v1/errors_pb.js';
import { requestIdFrom } from '../../domain/ids.ts';
import { type AccessLog, accessLineKey, accessLineOf } from '../../telemetry/access-log.ts';
import { failed } from '../errors.ts';
import { correctRefusals } from './correct-refusals.ts';
import { createCors } from './cors.ts';
import { takeText, textKey, toText } from './grpc-web-text.ts';
import { maxTimeoutMs } from './limits.ts';
import { bodyOf, headersOf, messageOf, messagesOf, takeEncoding } from './request-body.ts';
import { readAll } from './whole-body.ts';

/**
 * Serves RPCs on Node's servers, HTTP/1.1 and HTTP/2. What names no RPC goes to `fallback`. Every request gets an
 * id, in its `x-request-id` header and in that of its reply.
 *
 * Streams take Connect's own way between Node and its handlers. For unary calls, nearly all there are,
 * that way is a good part of what a call costs (iterators over both bodies, an abort with a stack trace
 * after each answer), so here a request is read in one piece, once it has passed the gate, and its answer is
 * written at once.
 */
export function createRpcHandler(options: RpcHandlerOptions): RpcHandler {
  const { routes, contextValues, fallback, accessLog, log } = options;
  const answerPages = createCors(options.allowedOrigins);
  const router = createConnectRouter();
  routes(router);
  correctRefusals(router);
  const handlers = new Map(router.handlers.map((handler) => [handler.requestPath, handler]));
  const services = new Set(router.handlers.map(({ service }) => service.typeName));

  return (request, response) => {
    const requestId = requestIdFrom(request.headers['x-request-id']);
    request.headers['x-request-id'] = requestId;
    response.setHeader('x-request-id', requestId);
    const line = accessLog?.(request, response, requestId);
    const path = pathOf(request);
    const handler = handlers.get(path);
    if (handler === undefined && !services.has(path.split('/', 2)[1] ?? ''))
      return fallback(request, response);
    // No cache may keep an answer, and no browser may take it for a page.
    response.setHeader('cache-control', 'no-store');
    response.setHeader('x-content-type-options', 'nosniff');
    if (handler === undefined) return refuseMethod(request, response as ServerResponse);
    if (line !== undefined) line.route = handler.requestPath;
    if (answerPages(handler.method, request, response)) return;
    clampDeadline(request.headers, handler.method);
    const values = contextValues(request);
    if (line !== undefined) values.set(accessLineKey, line);
    if (takeText(request.headers)) values.set(textKey, true);
    const answer = handler.method.methodKind === 'unary' ? answerWhole : answerStream;
    // Node gives HTTP/2 the methods of HTTP/1.1, with types that only differ in their overloads.
    answer(handler, request, response as ServerResponse, values).catch((error: unknown) => {
      const gone = response.destroyed || request.destroyed || ConnectError.from(error).code === Code.Aborted;
      response.destroy();
      const facts = { err: error, rpc: handler.requestPath, requestId };
      if (gone) return log.debug(facts, 'The caller has gone');
      log.error(facts, 'A call could not be answered');
    });
  };
}

function pathOf({ url = '' }: Request): string {
  const end = url.indexOf('?');
  return end === -1 ? url : url.slice(0, end);
}

/** Answers a call of a method that its service does not have. */
function refuseMethod(request: Request, response: ServerResponse): void {
  const error = failed(Reason.NOT_FOUND, 'There is no such method', { code: Code.Unimplemented });
  const { 'content-type': type = '' } = request.headers;
  if (!type.startsWith('application/grpc')) {
    const body = errorToJsonBytes(error, undefined);
    response.writeHead(501, { 'content-type': 'application/json', 'content-length': body.length }).end(body);
    return;
  }
  const header = Object.fromEntries(setTrailerStatus(new Headers({ 'content-type': type }), error));
  response.writeHead(200, header).end();
}

async function answerWhole(
  handler: UniversalHandler,
  request: Request,
  response: ServerResponse,
  contextValues: ContextValues,
): Promise<void> {
  const header = headersOf(request);
  const encoding = takeEncoding(request, header);
  const body = bodyOf({ method: handler.method, header, encoding }, contextValues, request, response);
  const caller = new AbortController();
  let answered = false;
  const gone = () => {
    if (!answered) caller.abort(new ConnectError('The caller has gone', Code.Canceled));
  };
  request.on('error', gone);
  // Comes once. `once` would keep more for each of thousands that wait.
  response.on('close', gone);
  const replied = await handler({
    httpVersion: request.httpVersion,
    method: request.method ?? '',
    url: `http://localhost${request.url}`,
    header,
    body,
    signal: caller.signal,
    contextValues,
  });
  const answer = inEncodingOf(contextValues, replied);
  const sent = answer.body === undefined ? '' : await readAll(answer.body);
  answered = true;
  if (response.destroyed) return;
  const line = accessLineOf(request);
  if (line !== undefined) line.bytes = sent.length;
  response.writeHead(answer.status, Object.fromEntries(answer.header ?? []));
  if (answer.trailer !== undefined) response.addTrailers(Object.fromEntries(answer.trailer));
  response.end(sent);
}

async function answerStream(
  handler: UniversalHandler,
  request: Request,
  response: ServerResponse,
  contextValues: ContextValues,
): Promise<void> {
  const { method } = handler;
  const call = universalRequestFromNodeRequest(request, response, undefined, contextValues);
  const body =
    method.methodKind === 'server_streaming'
      ? messageOf(method, contextValues, request, response)
      : messagesOf(method, contextValues, request);
  const answer = await handler({ ...call, body });
  const encoded = counted(inEncodingOf(contextValues, answer), request);
  await universalResponseToNodeResponse(encoded, response);
}

/** Counts the bytes of a stream where a line is written of its request. */
function counted(answer: UniversalServerResponse, request: Request): UniversalServerResponse {
  const line = accessLineOf(request);
  const { body } = answer;
  if (line === undefined || body === undefined) return answer;
  async function* bytes(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const chunk of chunks) {
      if (line !== undefined) line.bytes += chunk.byteLength;
      yield chunk;
    }
  }
  return { ...answer, body: bytes(body) };
}

function inEncodingOf(
  contextValues: ContextValues,
  answer: UniversalServerResponse,
): UniversalServerResponse {
  return contextValues.get(textKey) ? toText(answer) : answer;
}

/** Shortens deadlines to what a method may take: callers who would wait longer get what there is by then. */
function clampDeadline(headers: IncomingHttpHeaders, method: DescMethod): void {
  const longest = maxTimeoutMs(method);
  const { 'grpc-timeout': grpc, 'connect-timeout-ms': connect } = headers;
  if (
    typeof grpc === 'string' &&
    (parseGrpcTimeout(grpc, Number.POSITIVE_INFINITY).timeoutMs ?? 0) > longest
  ) {
    headers['grpc-timeout'] = `${Math.floor(longest / 1000)}S`;
  }
  if (typeof connect === 'string' && /^\d{1,10}$/.test(connect) && Number(connect) > longest)
    headers['connect-timeout-ms'] = String(longest);
}

export type RpcHandler = (request: Request, response: Response) => void;

type Request = IncomingMessage | Http2ServerRequest;
type Response = ServerResponse | Http2ServerResponse;

export type RpcHandlerOptions = {
  /** Origins whose pages may call every RPC. */
  allowedOrigins: readonly string[];
  routes: (router: ConnectRouter) => void;
  /** What a call begins with. */
  contextValues: (request: Request) => ContextValues;
  fallback: RpcHandler;
  /** Undefined: no line is written of each request. */
  accessLog?: AccessLog | undefined;
  log: Logger;
};
