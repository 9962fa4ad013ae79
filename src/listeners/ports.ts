import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { MAX_BACKLOG } from '../admission/bounds.ts';
import { StartError } from '../domain/errors/system-errors.ts';

/**
 * Listens on a port, 0 for a free one. Throws a `StartError` that names the setting of the port if it can't.
 */
export function listenOn(server: Server, host: string, port: number, setting: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once('error', (error: NodeJS.ErrnoException) => {
    reject(
      new StartError(
        `${setting}: can't listen on ${host}:${port}: ${reasons[error.code ?? ''] ?? error.message}`,
      ),
    );
  });
  server.listen({ port, host, backlog: MAX_BACKLOG }, resolve);
  return promise;
}

/** The port that a server listens on. */
export function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}

/** A port that is free now. Throws a `StartError` that names PORT if the host can't be listened on. */
export async function findFreePort(host: string): Promise<number> {
  const server = createServer();
  await listenOn(server, host, 0, 'PORT');
  const port = portOf(server);
  server.close();
  await once(server, 'close');
  return port;
}

const reasons: Record<string, string> = {
  EADDRINUSE: 'another program uses it',
  EACCES: 'this user may not (ports below 1024 need rights)',
  EADDRNOTAVAIL: 'this machine does not have that address',
  ENOTFOUND: 'that host name is not known',
};
