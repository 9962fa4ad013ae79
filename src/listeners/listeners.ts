import type { Server as Http1Server, RequestListener } from 'node:http';
import {
  constants,
  type Http2Server,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type ServerHttp2Session,
} from 'node:http2';
import { createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, Server as TlsServer } from 'node:tls';
import type { Admission } from '../admission/admission.ts';
import { standardTimeOuts, type TimeOuts } from '../admission/bounds.ts';
import type { Request, Response } from '../admission/client.ts';
import { countBody } from '../admission/read-body.ts';
import type { Log } from '../telemetry/log.ts';
import { type Certificate, readCertificate, type TlsFiles, watchCertificate } from './certificate.ts';
import { createHttp1Server } from './http1.ts';
import { createHttp2Server } from './http2.ts';
import { listenOn, portOf } from './ports.ts';

/**
 * Opens the two ports: one of HTTP/1.1, for REST, hosted pages, Connect and gRPC-Web, which takes HTTP/2 cleartext
 * as well, by its preface; and one of HTTP/2 cleartext alone, unless both have the same number. Calls by HTTP/2 go to
 * `grpc` on both. With `tls`, both take either by ALPN, and the files may change.
 *
 * Throws a `StartError` if the files can't be used, or it can't listen on one of the ports; then nothing stays open.
 */
export async function listen({ host, port, grpcPort, ...options }: ListenOptions): Promise<Listeners> {
  const certificate = options.tls && readCertificate(options.tls);
  const timeOuts = { ...standardTimeOuts, ...options.timeOuts };
  const { admission } = options;
  const servers = createServers(options, timeOuts);
  const destroyAfterEnd = lingering(timeOuts.lingerMs);
  const isOne = grpcPort === port && port !== 0;
  const { httpPort, rpcPort } =
    certificate === undefined
      ? openPlainPorts(servers, timeOuts, isOne)
      : openTlsPorts(servers, { certificate, timeOuts, destroyAfterEnd, isOne });
  const ports = isOne ? [httpPort] : [httpPort, rpcPort];
  for (const opened of ports) guard(opened, admission, destroyAfterEnd);

  try {
    await listenOn(httpPort, host, port, 'PORT');
    if (!isOne) await listenOn(rpcPort, host, grpcPort, 'GRPC_PORT');
  } catch (error) {
    for (const server of [httpPort, servers.http1, servers.http2]) server.close();
    throw error;
  }
  const watch =
    options.tls && certificate
      ? watchCertificate(options.tls, certificate, {
          log: options.log,
          changed(next) {
            for (const server of ports) {
              if (server instanceof TlsServer) server.setSecureContext({ ...next, ciphers });
            }
          },
        })
      : undefined;
  return {
    port: portOf(httpPort),
    grpcPort: portOf(rpcPort),
    drain: servers.drain,
    async close(graceMs) {
      watch?.[Symbol.dispose]();
      const closed = Promise.all(ports.map(closing));
      // Connections that become idle during the stop would be kept open for a next call.
      const idle = setInterval(() => servers.http1.closeIdleConnections(), IDLE_MS);
      for (const session of servers.sessions) session.close();
      const deadline = setTimeout(() => admission.destroyConnections(), graceMs);
      for (const server of [servers.http1, servers.http2]) server.close();
      await closed;
      clearTimeout(deadline);
      clearInterval(idle);
    },
  };
}

/** The servers of both protocols, which listen on no port of their own. */
function createServers({ http, grpc, admission, refuse }: Handlers, timeOuts: TimeOuts): Servers {
  let isDraining = false;
  const http1 = createHttp1Server(
    (request, response) =>
      admission.request(request, response, {
        begin() {
          if (isDraining) response.setHeader('connection', 'close');
          countBody(request, response, admission);
          http(request, response);
        },
        refuse() {
          response.setHeader('connection', 'close');
          refuse(request, response);
        },
      }),
    admission,
    timeOuts,
  );
  const http2 = createHttp2Server(
    (request, response) =>
      admission.request(request, response, {
        begin() {
          countBody(request, response, admission);
          grpc(request, response);
        },
        refuse() {
          refuse(request, response);
          // Else the stream would stay open for the rest of the body.
          response.stream.close(constants.NGHTTP2_NO_ERROR);
        },
      }),
    timeOuts,
  );
  return {
    http1,
    http2,
    sessions: trackSessions(http2),
    toHttp1: (socket) => void http1.emit('connection', socket),
    toHttp2(socket) {
      // HTTP/2 ends with its connection, whichever side closes it.
      socket.allowHalfOpen = false;
      http2.emit('connection', socket);
    },
    drain() {
      isDraining = true;
    },
  };
}

function openPlainPorts({ http1, toHttp1, toHttp2 }: Servers, timeOuts: TimeOuts, isOne: boolean): Ports {
  const undecided = (error: Error, socket: Socket) => void http1.emit('clientError', error, socket);
  const decided = { http1: toHttp1, http2: toHttp2, undecided };
  const httpPort = openPort((socket) => readPreface(socket, timeOuts.headersMs, decided));
  return { httpPort, rpcPort: isOne ? httpPort : openPort(toHttp2) };
}

function openTlsPorts(
  { toHttp1, toHttp2 }: Servers,
  { certificate, timeOuts, destroyAfterEnd, isOne }: TlsOptions,
): Ports {
  const open = (protocols: string[]) => {
    const options = {
      ...certificate,
      ciphers,
      ALPNProtocols: protocols,
      handshakeTimeout: timeOuts.headersMs,
      allowHalfOpen: true,
    };
    const server = createTlsServer(options, (socket) => {
      destroyAfterEnd(socket);
      if (socket.alpnProtocol === 'h2') toHttp2(socket);
      else toHttp1(socket);
    });
    // Node leaves connections open whose handshake fails or takes too long.
    return server.on('tlsClientError', (_error, socket) => socket.destroy());
  };
  // Browsers must get HTTP/1.1, which has the pages, where both are offered.
  const httpPort = open(['http/1.1', 'h2']);
  return { httpPort, rpcPort: isOne ? httpPort : open(['h2', 'http/1.1']) };
}

/** From now on, what listens to the server's `connection` event only gets connections that are admitted. */
function guard(server: Server, admission: Admission, destroyAfterEnd: (socket: Socket) => void): void {
  const listeners = server.listeners('connection');
  server.removeAllListeners('connection');
  server.on('connection', (socket: Socket) => {
    if (!admission.connection(socket)) return socket.destroy();
    destroyAfterEnd(socket);
    // Without a listener an error of a socket that nobody reads any more, such as of a refused stream, would end the
    // process. Whoever reads it has one of their own.
    socket.on('error', () => undefined);
    for (const listener of listeners) Reflect.apply(listener, server, [socket]);
  });
}

/**
 * Makes what destroys a connection some time after it was ended on this side: who never closes the other one would
 * keep it permanently.
 */
function lingering(lingerMs: number): (socket: Socket) => void {
  function finished(this: Socket): void {
    const linger = setTimeout(() => this.destroy(), lingerMs);
    this.once('close', () => clearTimeout(linger));
  }
  return (socket) => void socket.on('finish', finished);
}

/** A port whose connections may be closed on one side, as HTTP's can. */
function openPort(take: (socket: Socket) => void): Server {
  return createServer({ allowHalfOpen: true, noDelay: true }, take);
}

/** How soon a connection is closed after its last call, during a stop. */
const IDLE_MS = 50;

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

/** Those of TLS 1.3, and of TLS 1.2 those with forward secrecy and authenticated encryption: no CBC. */
const ciphers = [
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'TLS_AES_128_GCM_SHA256',
  'ECDHE+AESGCM',
  'ECDHE+CHACHA20',
].join(':');

/**
 * Waits for the first bytes of a connection and says whether they are the preface of HTTP/2 (RFC 9113, section
 * 3.4). The bytes stay in the socket.
 *
 * `undecided` gets a connection that sends nothing for `timeoutMs`, or ends before it is clear.
 */
function readPreface(socket: Socket, timeoutMs: number, decided: Decisions): void {
  let seen = Buffer.alloc(0);
  const timer = setTimeout(() => undecide('ERR_HTTP_REQUEST_TIMEOUT'), timeoutMs);

  function read(): void {
    for (let chunk = socket.read(); chunk !== null; chunk = socket.read())
      seen = Buffer.concat([seen, chunk]);
    const compared = Math.min(seen.length, PREFACE.length);
    const fits = PREFACE.subarray(0, compared).equals(seen.subarray(0, compared));
    if (fits && compared < PREFACE.length) return;
    stop();
    socket.unshift(seen);
    if (fits) decided.http2(socket);
    else decided.http1(socket);
  }

  function undecide(code: string): void {
    stop();
    decided.undecided(Object.assign(new Error('The connection does not begin'), { code }), socket);
  }

  function ended(): void {
    if (seen.length > 0) {
      undecide('HPE_INVALID_EOF_STATE');
      return;
    }
    stop();
    socket.end();
  }

  function stop(): void {
    clearTimeout(timer);
    socket.off('readable', read).off('end', ended).off('error', stop).off('close', stop);
  }

  socket.on('readable', read).on('end', ended).on('error', stop).on('close', stop);
}

/** As of RFC 9113, section 3.4. */
const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');

export type ListenOptions = {
  host: string;
  /** 0 takes a free one. */
  port: number;
  /** 0 takes another free one. */
  grpcPort: number;
  http: RequestListener;
  grpc: (request: Http2ServerRequest, response: Http2ServerResponse) => void;
  admission: Admission;
  /** Answers a request that may not wait: too many of its client do. */
  refuse: (request: Request, response: Response) => void;
  /** What to serve TLS with, on both ports; absent: cleartext. */
  tls?: TlsFiles | undefined;
  /** Other time-outs than the standard ones. */
  timeOuts?: Partial<TimeOuts>;
  log: Log;
};

export type Listeners = {
  port: number;
  grpcPort: number;
  /** Ends each connection of HTTP/1.1 with its next answer, so that its client opens the next one elsewhere. */
  drain: () => void;
  /** Accepts no more connections, and waits at most `graceMs` for calls under way. */
  close: (graceMs: number) => Promise<void>;
};

type Handlers = Pick<ListenOptions, 'http' | 'grpc' | 'admission' | 'refuse'>;

type Servers = {
  http1: Http1Server;
  http2: Http2Server;
  /** Those that are open. */
  sessions: Set<ServerHttp2Session>;
  toHttp1: (socket: Socket) => void;
  toHttp2: (socket: Socket) => void;
  drain: () => void;
};

/** `isOne`: both are the same. */
type Ports = { httpPort: Server; rpcPort: Server };

type TlsOptions = {
  certificate: Certificate;
  timeOuts: TimeOuts;
  destroyAfterEnd: (socket: Socket) => void;
  isOne: boolean;
};

type Decisions = {
  http1: (socket: Socket) => void;
  http2: (socket: Socket) => void;
  /** The error has a code of Node's parser. */
  undecided: (error: NodeJS.ErrnoException, socket: Socket) => void;
};
