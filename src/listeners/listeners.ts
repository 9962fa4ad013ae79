import type { RequestListener, Server } from 'node:http';
import { createServer as createHttp2Server, type Http2Server, type ServerHttp2Session } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { StartError } from '../store/database/faults.ts';
import { type ConnectionLimitOptions, createConnectionLimits } from './connection-limits.ts';
import { createHttp1Server } from './http1.ts';
import { standardTimeOuts, type TimeOuts } from './time-outs.ts';

/**
 * Opens the two servers: HTTP/1.1 for REST, hosted pages, Connect and gRPC-Web; HTTP/2 cleartext
 * for gRPC and Connect.
 *
 * Throws a `StartError` if it can't listen on one of the ports; then neither stays open.
 */
export async function listen({
  host,
  port,
  grpcPort,
  http,
  grpc,
  ...options
}: ListenOptions): Promise<Listeners> {
  const timeOuts = { ...standardTimeOuts, ...options.timeOuts };
  const httpServer = createHttp1Server(http, timeOuts);
  const grpcServer = createHttp2Server(grpc);
  const limits = createConnectionLimits(options);
  for (const server of [httpServer, grpcServer]) limits.guard(server);
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

function portOf(server: Server | Http2Server): number {
  return (server.address() as AddressInfo).port;
}

export type ListenOptions = ConnectionLimitOptions & {
  host: string;
  /** 0 takes a free one. */
  port: number;
  grpcPort: number;
  http: RequestListener;
  grpc: Parameters<typeof createHttp2Server>[0] & object;
  /** Other time-outs than the standard ones. */
  timeOuts?: Partial<TimeOuts>;
};

export type Listeners = {
  port: number;
  grpcPort: number;
  /** Accepts no more connections, and waits at most `graceMs` for calls under way. */
  close(graceMs: number): Promise<void>;
};
