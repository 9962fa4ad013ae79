import type { Server, Socket } from 'node:net';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { throttledWarning } from '../telemetry/throttled-warning.ts';

/**
 * Bounds how many connections are open, of all servers it guards together and of each client. A connection
 * beyond a bound is closed at once, without an answer.
 *
 * One that a server has closed on its side is destroyed after `lingerMs`: who never closes the other side would
 * keep it for ever.
 */
export function createConnectionLimits(options: ConnectionLimitOptions, lingerMs: number): ConnectionLimits {
  const { maxConnections, maxConnectionsPerClient, clientOf, now, log, metrics } = options;
  const warn = throttledWarning(log, now, WARN_EVERY_MS);
  const destroyAfterEnd = createLingering(lingerMs);
  const openOf = new Map<string, number>();

  /** For whom each counts. */
  const open = new Map<Socket, string | undefined>();

  function count(client: string | undefined, change: 1 | -1): void {
    if (client === undefined) return;
    const left = (openOf.get(client) ?? 0) + change;
    if (left === 0) openOf.delete(client);
    else openOf.set(client, left);
  }

  function admits(socket: Socket): boolean {
    const { remoteAddress } = socket;
    // The client has gone while it waited to be accepted.
    if (remoteAddress === undefined) return false;
    if (open.size >= maxConnections) {
      metrics?.onLimit('connections');
      warn({ maxConnections }, 'Too many connections are open; new ones are closed at once');
      return false;
    }
    const client = clientOf(remoteAddress);
    if (client !== undefined && (openOf.get(client) ?? 0) >= maxConnectionsPerClient) {
      metrics?.onLimit('connections_per_client');
      warn(
        { client, maxConnectionsPerClient },
        'A client has too many connections; its new ones are closed at once. If it is a proxy, TRUST_PROXY exempts it',
      );
      return false;
    }
    open.set(socket, client);
    count(client, 1);
    // Comes once. `once`, or a function for each, would keep more for each connection.
    socket.on('close', closed);
    return true;
  }

  function closed(this: Socket): void {
    count(open.get(this), -1);
    open.delete(this);
  }

  return {
    open: () => open.size,
    guard(server) {
      const listeners = server.listeners('connection');
      server.removeAllListeners('connection');
      server.on('connection', (socket: Socket) => {
        if (!admits(socket)) return socket.destroy();
        destroyAfterEnd(socket);
        // Whoever reads it hears of its failure, if anybody does; nobody does once it was refused.
        socket.on('error', ignore);
        for (const listener of listeners) Reflect.apply(listener, server, [socket]);
      });
    },
    destroyAll() {
      for (const socket of open.keys()) socket.destroy();
    },
  };
}

/** Makes what ends a connection on both sides some time after it was ended on this one. */
export function createLingering(lingerMs: number): (socket: Socket) => void {
  function finished(this: Socket): void {
    const linger = setTimeout(() => this.destroy(), lingerMs);
    this.once('close', () => clearTimeout(linger));
  }
  return (socket) => void socket.on('finish', finished);
}

function ignore(): void {}

const WARN_EVERY_MS = 10_000;

export type ConnectionLimits = {
  /** How many connections are open. */
  open(): number;
  /** From now on, what listens to the server's `connection` event only gets connections within the bounds. */
  guard(server: Server): void;
  /** Ends every connection that is open. */
  destroyAll(): void;
};

export type ConnectionLimitOptions = {
  maxConnections: number;
  maxConnectionsPerClient: number;
  /** Whom an address counts for; undefined for a trusted proxy, whose connections are those of many clients. */
  clientOf: (address: string) => string | undefined;
  /** Milliseconds since 1970. */
  now: () => number;
  log: Log;
  metrics?: Pick<Metrics, 'onLimit'> | undefined;
};
