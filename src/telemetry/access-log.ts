import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import type { Log } from './log.ts';
import type { FinishedRequest, Metrics } from './metrics.ts';
import { currentTraceparent, traceIdOf } from './trace-context.ts';

/**
 * Writes a line for each request when its answer has ended: by which route it came, not by which path, since paths
 * hold tokens, and without queries, headers and bodies; and counts it in `metrics`. Probes that succeed are logged at
 * debug: load balancers send them each second or more often. Without a log, or if that leaves such lines out, requests
 * are only counted, or given a line for others to read (`isRead`). Undefined if there is nothing to do.
 */
export function createAccessLog({ log, metrics, isRead = false }: AccessLogOptions): AccessLog | undefined {
  const writes = log !== undefined && log.isLevelEnabled?.('info') !== false;
  if (!writes && !isRead && metrics === undefined) return undefined;
  return (request, response, ids) => {
    const startedAt = performance.now();
    const line: AccessLine = {
      ...ids,
      traceId: traceIdOf(currentTraceparent()),
      method: request.method,
      route: undefined,
      status: undefined,
      code: undefined,
      reason: undefined,
      ms: 0,
      bytes: undefined,
      keyId: undefined,
      project: undefined,
      aborted: undefined,
    };
    // A map beside the requests costs half a microsecond more.
    Object.assign(request, { [lineOf]: line });
    response.on('close', () => {
      line.route ??= routeOf(request);
      if (response.headersSent) line.status = response.statusCode;
      if (!response.writableFinished) line.aborted = true;
      const length = request.method === 'HEAD' ? 0 : response.getHeader('content-length');
      if (length !== undefined) line.bytes ??= Number(length);
      line.ms = Math.round((performance.now() - startedAt) * 10) / 10;
      metrics?.onRequest(line);
      if (!writes) return;
      if (isPassedProbe(line)) log.debug(line, 'request');
      else log.info(line, 'request');
    });
    return line;
  };
}

/** The line of a request under way; undefined if none is written. */
export function accessLineOf(request: Watched): AccessLine | undefined {
  return request[lineOf];
}

/** Names in a line, if there is one, who called. */
export function noteCaller(
  line: AccessLine | undefined,
  { keyId, project }: { keyId: string | undefined; project: string },
): void {
  if (line === undefined) return;
  line.keyId = keyId;
  line.project = project;
}

/** Notes why a request was refused, or something that was done for it. The last reason counts. */
export function noteRefusal(line: AccessLine | undefined, reason: string): void {
  if (line !== undefined) line.reason = reason;
}

/** The pattern that Express matched, such as `/v1/forms/:id`; undefined if no route matches. */
function routeOf(request: object): string | undefined {
  if (!('route' in request)) return undefined;
  const { route } = request;
  if (typeof route !== 'object' || route === null || !('path' in route)) return undefined;
  return typeof route.path === 'string' ? route.path : undefined;
}

function isPassedProbe({ route = '', status, code, aborted }: AccessLine): boolean {
  return probeRoutes.has(route) && status === 200 && code === undefined && aborted === undefined;
}

const probeRoutes = new Set(['/health', '/ready', '/grpc.health.v1.Health/Check']);

const lineOf = Symbol('access line');

/** Begins the line of a request. */
export type AccessLog = (request: Request, response: Response, ids: RequestIds) => AccessLine;

type RequestIds = {
  requestId: string;
  /** Where `requestId` is the caller's, who can use one for many requests: one that no other request has. */
  ownRequestId: string | undefined;
};

/** What is undefined is left out of the line. */
export type AccessLine = RequestIds &
  FinishedRequest & {
    /** Where it is recorded. */
    traceId: string | undefined;
    /** Of the answer's body, if it is known before it is sent: that of a stream is not. */
    bytes: number | undefined;
    keyId: string | undefined;
    project: string | undefined;
    /** True if the answer didn't come to its end. */
    aborted: true | undefined;
  };

/** A request, which has its line if one is written of it. */
type Watched = object & { [lineOf]?: AccessLine };

export type AccessLogOptions = {
  /** Absent: no lines. */
  log?: Log | undefined;
  /** Absent: no counts. */
  metrics?: Pick<Metrics, 'onRequest'> | undefined;
  /** Whether others want the line of a request. */
  isRead?: boolean;
};

/** Those of Node's servers of HTTP/1.1 and HTTP/2. */
export type Request = IncomingMessage | Http2ServerRequest;
export type Response = ServerResponse | Http2ServerResponse;
