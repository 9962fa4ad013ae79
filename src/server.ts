import { createServer, type RequestListener, type Server, STATUS_CODES } from 'node:http';
import { createServer as createHttp2Server, type Http2Server, type ServerHttp2Session } from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
import { HttpError } from './http/errors.ts';
import { StartError } from './store/database/faults.ts';

/**
 * Opens the two servers: HTTP/1.1 for REST, hosted pages, Connect and gRPC-Web; HTTP/2 cleartext
 * for gRPC and Connect.
 *
 * Throws a `StartError` if it can't listen on one of the ports; then neither stays open.
 */
export async function listen({ host, port, grpcPort, http, grpc }: ListenOptions): Promise<Listeners> {
  const httpServer = createServer(limits, http);
  httpServer.on('clientError', refuseBrokenRequest);
  // An unknown Expect header is ignored, since the interface has no status 417.
  httpServer.on('checkExpectation', http);
  const grpcServer = createHttp2Server(grpc);
  const sessions = trackSessions(grpcServer);

  await listenOn(httpServer, host, port, 'PORT');
  try {
    await listenOn(grpcServer, host, grpcPort, 'GRPC_PORT');
  } catch (error) {
    httpServer.close();
    throw error;
  }
  return {
    port: portOf(httpServer),
    grpcPort: portOf(grpcServer),
    async close(graceMs) {
      const closed = Promise.all([closing(httpServer), closing(grpcServer)]);
      // Connections that become idle during the stop would be kept open for a next call.
      const idle = setInterval(() => httpServer.closeIdleConnections(), IDLE_MS);
      for (const session of sessions) session.close();
      const deadline = setTimeout(() => {
        httpServer.closeAllConnections();
        for (const session of sessions) session.destroy();
      }, graceMs);
      await closed;
      clearTimeout(deadline);
      clearInterval(idle);
    },
  };
}

/** How soon a connection is closed after its last call, during a stop. */
const IDLE_MS = 50;

function listenOn(server: Server | Http2Server, host: string, port: number, setting: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once('error', (error: NodeJS.ErrnoException) => {
    reject(
      new StartError(
        `${setting}: can't listen on ${host}:${port}: ${reasons[error.code ?? ''] ?? error.message}`,
      ),
    );
  });
  server.listen(port, host, resolve);
  return promise;
}

const reasons: Record<string, string> = {
  EADDRINUSE: 'another program uses it',
  EACCES: 'this user may not (ports below 1024 need rights)',
  EADDRNOTAVAIL: 'this machine does not have that address',
  ENOTFOUND: 'that host name is not known',
};

function closing(server: Server | Http2Server): Promise<void> {
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

/** Answers what Node's parser refuses with the error body of the interface, and closes the connection. */
function refuseBrokenRequest(error: NodeJS.ErrnoException, socket: Socket): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const refused = brokenRequests[error.code ?? ''] ?? notHttp;
  const body = JSON.stringify(refused.body);
  socket.end(
    `HTTP/1.1 ${refused.status} ${STATUS_CODES[refused.status]}\r\nContent-Type: application/json; charset=utf-8\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
}

const notHttp = new HttpError('bad_request', 'The request is not HTTP');

const brokenRequests: Record<string, HttpError> = {
  HPE_HEADER_OVERFLOW: new HttpError('too_large', 'The URL or the headers are too large'),
  ERR_HTTP_REQUEST_TIMEOUT: new HttpError('bad_request', 'The request took too long to arrive'),
};

function portOf(server: Server | Http2Server): number {
  return (server.address() as AddressInfo).port;
}

/** Time-outs in milliseconds, so that slow senders do not keep connections; sizes in bytes. */
const limits = {
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  keepAliveTimeout: 5_000,
  connectionsCheckingInterval: 5_000,
  maxHeaderSize: 16 * 1024,
};

export type ListenOptions = {
  host: string;
  /** 0 takes a free one. */
  port: number;
  grpcPort: number;
  http: RequestListener;
  grpc: Parameters<typeof createHttp2Server>[0] & object;
};

export type Listeners = {
  port: number;
  grpcPort: number;
  /** Accepts no more connections, and waits at most `graceMs` for calls under way. */
  close(graceMs: number): Promise<void>;
};
