import type { ServerResponse } from 'node:http';
import { createRegistry, type DescMethod } from '@bufbuild/protobuf';
import { Code, ConnectError, type ContextValues, cors as connect } from '@connectrpc/connect';
import cors, { type CorsRequest } from 'cors';
import type { Logger } from 'pino';
import { Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import { isGone, type Request, type Response } from '../../admission/client.ts';
import { failed, nameOf, reasonOf } from '../../domain/errors/failure.ts';
import { requestIdFrom } from '../../domain/ids.ts';
import { isOpenToPages } from '../../domain/methods.ts';
import { type AccessLog, noteRefusal } from '../../telemetry/access-log.ts';
import { factsOf } from '../context.ts';
import type { Served } from '../registry.ts';
import type { Received } from './message.ts';
import { connectJson, refusalIn, spokenBy } from './protocols.ts';
import { answerStream, createStreamHandlers } from './streams.ts';
import { answerUnary, type UnaryMethod, type UnaryRpc } from './unary.ts';

/**
 * Serves RPCs on Node's servers, HTTP/1.1 and HTTP/2. What names no RPC goes to `fallback`. Every request gets an
 * id, in its `x-request-id` header and in that of its reply.
 *
 * Unary calls, nearly all there are, are answered here. Streams take Connect's way between Node and its handlers, of
 * which iterators over both bodies and an abort with a stack trace after each answer would be a good part of what a
 * call costs.
 */
export function createRpcHandler(options: RpcHandlerOptions): RpcHandler {
  const { served, contextValues, fallback, accessLog, log } = options;
  const answerPages = createCors(options.allowedOrigins);
  const rpcs = rpcsOf(served);
  const services = new Set(served.methods.map(({ method }) => method.parent.typeName));

  return (request, response, refusal) => {
    const sent = request.headers['x-request-id'];
    const requestId = requestIdFrom(sent);
    const ids = { requestId, ownRequestId: requestId === sent ? requestIdFrom(undefined) : undefined };
    request.headers['x-request-id'] = requestId;
    response.setHeader('x-request-id', requestId);
    // No cache may keep an answer, and no browser may take it for something else, unless it says so itself.
    response.setHeader('cache-control', 'no-store');
    response.setHeader('x-content-type-options', 'nosniff');
    response.setHeader('referrer-policy', 'no-referrer');
    response.setHeader('content-security-policy', NO_CONTENT);
    if (options.isTls === true) response.setHeader('strict-transport-security', `max-age=${YEAR_SECONDS}`);
    const line = accessLog?.(request, response, ids);
    if (refusal !== undefined) noteRefusal(line, nameOf(reasonOf(refusal)));
    const [path = ''] = request.url?.split('?', 1) ?? [];
    const rpc = rpcs.get(path);
    if (rpc === undefined && !services.has(path.split('/', 2)[1] ?? ''))
      return fallback(request, response, refusal);
    if (rpc === undefined) return refuseCall(request, response, refusal ?? noMethod);
    if (line !== undefined) line.route = path;
    if (answerPages(rpc.method, request, response)) return;
    if (refusal !== undefined) return refuseCall(request, response, refusal);
    const values = contextValues(request);
    factsOf({ values }).line = line;
    // Node gives HTTP/2 the methods of HTTP/1.1, with types that only differ in their overloads.
    rpc.answer({ request, response: response as ServerResponse, values }).catch((error: unknown) => {
      const gone = isGone(request) || ConnectError.from(error).code === Code.Aborted;
      response.destroy();
      const facts = { err: error, rpc: path, ...ids };
      if (gone) return log.debug(facts, 'The caller has gone');
      log.error(facts, 'A call could not be answered');
    });
  };
}

/** What answers the calls of each path. */
function rpcsOf(served: Served): ReadonlyMap<string, Rpc> {
  const registry = createRegistry(...new Set(served.methods.map(({ method }) => method.parent.file)));
  const formats = {
    // A caller's unknown fields would become objects that nothing reads.
    binaryOptions: { readUnknownFields: false },
    jsonOptions: { ignoreUnknownFields: true, registry },
  };
  const rpcs = new Map<string, Rpc>();
  for (const handler of createStreamHandlers(served, formats)) {
    rpcs.set(handler.requestPath, {
      method: handler.method,
      answer: (received) => answerStream(handler, received),
    });
  }
  for (const [method, call] of served.calls) {
    if (!isUnary(method)) continue;
    const rpc = { ...served, method, call, formats };
    rpcs.set(`/${method.parent.typeName}/${method.name}`, {
      method,
      answer: (received) => sendUnary(rpc, received),
    });
  }
  return rpcs;
}

function isUnary(method: DescMethod): method is UnaryMethod {
  return method.methodKind === 'unary';
}

/** Answers a call with an error, by its protocol, without reading anything but its headers. */
function refuseCall(request: Request, response: Response, error: ConnectError): void {
  const spoken = spokenBy(request.headers['content-type']) ?? connectJson;
  const { status, header, body } = refusalIn(spoken, error);
  const headers = Object.fromEntries(header);
  // In a frame that ends the stream. Else some libraries don't take the status from headers: grpcio and Ruby's tell
  // of UNKNOWN, Go's and Java's of INTERNAL.
  if (body.length === 0 && 'stream' in response)
    response.stream.respond({ ...response.getHeaders(), ':status': status, ...headers }, { endStream: true });
  else (response as ServerResponse).writeHead(status, headers).end(body);
}

/** Of what is no page: a browser that shows it loads and runs nothing. */
const NO_CONTENT = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const YEAR_SECONDS = 365 * 24 * 3600;

const noMethod = failed(Reason.NOT_FOUND, 'There is no such method', { code: Code.Unimplemented });

/** Answers a unary call, which is written at once. */
async function sendUnary(rpc: UnaryRpc, received: Received): Promise<void> {
  const { request, response, values } = received;
  const caller = new AbortController();
  let answered = false;
  const gone = () => {
    if (!answered) caller.abort(new ConnectError('The caller has gone', Code.Canceled));
  };
  request.on('error', gone);
  // It comes once anyway; `once` would keep more memory for each of thousands that wait.
  response.on('close', gone);
  const { status, header, trailer, body } = await answerUnary(rpc, { ...received, caller });
  answered = true;
  if (response.destroyed) return;
  const { line } = factsOf({ values });
  if (line !== undefined) line.bytes = body.length;
  response.writeHead(status, Object.fromEntries(header));
  if (trailer !== undefined) response.addTrailers(Object.fromEntries(trailer));
  response.end(body);
}

/** Answers a request; one that comes with a `refusal`, with that, and does nothing else for it. */
export type RpcHandler = (request: Request, response: Response, refusal?: ConnectError) => void;

type Rpc = { method: DescMethod; answer: (received: Received) => Promise<void> };

export type RpcHandlerOptions = {
  /** Whether clients connect by TLS, which browsers then keep to. */
  isTls?: boolean;
  /** Origins whose pages may call every RPC. */
  allowedOrigins: readonly string[];
  served: Served;
  /** What a call begins with. */
  contextValues: (request: Request) => ContextValues;
  fallback: RpcHandler;
  /** Undefined: no line is written of each request. */
  accessLog?: AccessLog | undefined;
  log: Logger;
};

/**
 * Says which pages of other origins may call an RPC and read its answer: those of any origin where it is public,
 * and those of `allowedOrigins` everywhere. No cookie is used.
 *
 * Returns true if the request is a preflight, which is answered then; one that is refused has status 403.
 */
function createCors(allowedOrigins: readonly string[]): Cors {
  const toAll = cors({ ...common, origin: '*' });
  const toAllowed = cors({ ...common, origin: [...allowedOrigins] });
  return (method, request, response) => {
    const isPreflight = request.method === 'OPTIONS';
    // Most calls come from no page, and say nothing of origins.
    if (request.headers.origin === undefined && !isPreflight) return false;
    const answer = isOpenToPages(method) ? toAll : toAllowed;
    answer(request as CorsRequest, response as ServerResponse, () => undefined);
    if (!isPreflight) return false;
    response.statusCode = response.hasHeader('access-control-allow-origin') ? 204 : 403;
    response.end();
    return true;
  };
}

const common = {
  methods: ['GET', 'POST'],
  allowedHeaders: [...connect.allowedHeaders, 'Authorization', 'X-Request-Id'],
  exposedHeaders: [
    ...connect.exposedHeaders,
    'RateLimit',
    'RateLimit-Policy',
    'Retry-After',
    'WWW-Authenticate',
    'X-Request-Id',
  ],
  // As long as browsers keep it at most.
  maxAge: 7200,
  preflightContinue: true,
};

type Cors = (method: DescMethod, request: Request, response: Response) => boolean;
