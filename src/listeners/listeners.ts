import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Http2Server, Http2ServerRequest, Http2ServerResponse, ServerHttp2Session } from 'node:http2';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, Server as TlsServer } from 'node:tls';
import type { BodyBudget } from '../body/budget.ts';
import { hasBody } from '../body/has-body.ts';
import { countBody } from '../body/read-body.ts';
import { StartError } from '../domain/errors/start-error.ts';
import { readCertificate, type TlsFiles, watchCertificate } from './certificate.ts';
import { type ConnectionLimitOptions, createConnectionLimits, createLingering } from './connection-limits.ts';
import { createHttp1Server } from './http1.ts';
import { createHttp2Server } from './http2.ts';
import { readPreface } from './preface.ts';
import { standardTimeOuts, type TimeOuts } from './time-outs.ts';
import { createTurns, type TurnOptions, type Turns } from './turns.ts';

/**
 * Opens the two ports: one of HTTP/1.1, for REST, hosted pages, Connect and gRPC-Web, which takes HTTP/2 cleartext
 * as well, by its preface; and one of HTTP/2 cleartext alone. Calls by HTTP/2 go to `grpc` on both. With `tls`, both
 * take either by ALPN, and the files may change.
 *
 * Throws a `StartError` if the files can't be used, or it can't listen on one of the ports; then nothing stays open.
 */
export async function listen({
  host,
  port,
  grpcPort,
  http,
  grpc,
  ...options
}: ListenOptions): Promise<Listeners> {
  const certificate = options.tls && readCertificate(options.tls);
  const timeOuts = { ...standardTimeOuts, ...options.timeOuts };
  const counted = countBodies(options);
  let isDraining = false;
  const inTurns: Turns = options.rateLimit ? createTurns(options) : (handler) => handler;
  const http1 = createHttp1Server(
    inTurns(
      counted<IncomingMessage, ServerResponse>((request, response) => {
        if (isDraining) response.setHeader('connection', 'close');
        http(request, response);
      }),
    ),
    timeOuts,
  );
  const http2 = createHttp2Server(inTurns(counted(grpc)), timeOuts);
  const sessions = trackSessions(http2);
  const toHttp1 = (socket: Socket) => void http1.emit('connection', socket);
  const toHttp2 = (socket: Socket) => {
    // HTTP/2 ends with its connection, whichever side closes it.
    socket.allowHalfOpen = false;
    http2.emit('connection', socket);
  };
  const divided = {
    http1: toHttp1,
    http2: toHttp2,
    undecided: (error: Error, socket: Socket) => void http1.emit('clientError', error, socket),
  };
  const destroyAfterEnd = createLingering(timeOuts.lingerMs);
  const openTls = (protocols: string[]) => {
    const server = createTlsServer(
      { ...certificate, ALPNProtocols: protocols, handshakeTimeout: timeOuts.headersMs, allowHalfOpen: true },
      (socket) => {
        destroyAfterEnd(socket);
        if (socket.alpnProtocol === 'h2') toHttp2(socket);
        else toHttp1(socket);
      },
    );
    // Node leaves connections open whose handshake fails or takes too long.
    return server.on('tlsClientError', (_error, socket) => socket.destroy());
  };
  // Browsers must get HTTP/1.1, which has the pages, where both are offered.
  const httpPort = certificate
    ? openTls(['http/1.1', 'h2'])
    : openPort((socket) => readPreface(socket, timeOuts.headersMs, divided));
  const rpcPort = certificate ? openTls(['h2', 'http/1.1']) : openPort(toHttp2);
  const limits = createConnectionLimits(options, timeOuts.lingerMs);
  for (const opened of [httpPort, rpcPort]) limits.guard(opened);

  try {
    await listenOn(httpPort, host, port, 'PORT');
    await listenOn(rpcPort, host, grpcPort, 'GRPC_PORT');
  } catch (error) {
    for (const server of [httpPort, http1, http2]) server.close();
    throw error;
  }
  const watch =
    options.tls && certificate
      ? watchCertificate(options.tls, certificate, {
          log: options.log,
          changed(next) {
            for (const server of [httpPort, rpcPort]) {
              if (server instanceof TlsServer) server.setSecureContext(next);
            }
          },
        })
      : undefined;
  return {
    port: portOf(httpPort),
    grpcPort: portOf(rpcPort),
    connections: () => limits.open(),
    drain() {
      isDraining = true;
    },
    async close(graceMs) {
      watch?.[Symbol.dispose]();
      const closed = Promise.all([closing(httpPort), closing(rpcPort)]);
      // Connections that become idle during the stop would be kept open for a next call.
      const idle = setInterval(() => http1.closeIdleConnections(), IDLE_MS);
      for (const session of sessions) session.close();
      const deadline = setTimeout(() => limits.destroyAll(), graceMs);
      for (const server of [http1, http2]) server.close();
      await closed;
      clearTimeout(deadline);
      clearInterval(idle);
    },
  };
}

/** A port whose connections may be closed on one side, as HTTP's can. */
function openPort(take: (socket: Socket) => void): Server {
  return createServer({ allowHalfOpen: true, noDelay: true }, take);
}

/** How soon a connection is closed after its last call, during a stop. */
const IDLE_MS = 50;

/**
 * Connections that wait to be taken: with Node's 511, those of others wait for seconds beside a flood. Linux allows
 * as many by default.
 */
const BACKLOG = 4_096;

function listenOn(server: Server, host: string, port: number, setting: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once('error', (error: NodeJS.ErrnoException) => {
    reject(
      new StartError(
        `${setting}: can't listen on ${host}:${port}: ${reasons[error.code ?? ''] ?? error.message}`,
      ),
    );
  });
  server.listen({ port, host, backlog: BACKLOG }, resolve);
  return promise;
}

const reasons: Record<string, string> = {
  EADDRINUSE: 'another program uses it',
  EACCES: 'this user may not (ports below 1024 need rights)',
  EADDRNOTAVAIL: 'this machine does not have that address',
  ENOTFOUND: 'that host name is not known',
};

function closing(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
  });
}

function trackSessions(server: Http2Server): Set<ServerHttp2Session> {
  const sessions = new Set<ServerHttp2Session>();
  server.on('session', (session) => {
    sessions.add(session);
    session.once('close', () => sessions.delete(session));
  });
  return sessions;
}

/** Counts the bodies of the requests that a handler gets. */
function countBodies({ bodies, clientOfRequest }: BodyOptions) {
  return <Q extends Request, A extends Response>(handler: (request: Q, response: A) => void) =>
    (request: Q, response: A) => {
      if (hasBody(request)) countBody(request, response, bodies, () => clientOfRequest(request));
      handler(request, response);
    };
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}

type Request = IncomingMessage | Http2ServerRequest;
type Response = ServerResponse | Http2ServerResponse;

type BodyOptions = {
  /** Where the bodies of requests are counted. */
  bodies: BodyBudget;
  /** For whom; undefined for a trusted proxy that names nobody. */
  clientOfRequest: (request: Request) => string | undefined;
};

export type ListenOptions = ConnectionLimitOptions &
  BodyOptions &
  TurnOptions & {
    host: string;
    /** 0 takes a free one. */
    port: number;
    grpcPort: number;
    http: RequestListener;
    grpc: (request: Http2ServerRequest, response: Http2ServerResponse) => void;
    /** Whether the calls of a client are bounded. */
    rateLimit: boolean;
    /** What to serve TLS with, on both ports; absent: cleartext. */
    tls?: TlsFiles | undefined;
    /** Other time-outs than the standard ones. */
    timeOuts?: Partial<TimeOuts>;
  };

export type Listeners = {
  port: number;
  grpcPort: number;
  /** How many are open. */
  connections: () => number;
  /** Ends each connection of HTTP/1.1 with its next answer, so that its client opens the next one elsewhere. */
  drain: () => void;
  /** Accepts no more connections, and waits at most `graceMs` for calls under way. */
  close: (graceMs: number) => Promise<void>;
};
