import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/**
 * Opens a TCP proxy before a PostgreSQL server on a free port of 127.0.0.1, for tests in which the database
 * goes away: `cut` ends every connection and refuses new ones, `stall` keeps them open without an answer,
 * and `mend` forwards new connections again.
 */
export async function openDatabaseProxy(databaseUrl: string): Promise<DatabaseProxy> {
  const to = new URL(databaseUrl);
  const sockets = new Set<Socket>();
  let stalled = false;
  const server = createServer((near) => {
    const far = connect(Number(to.port), to.hostname);
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(socket);
      socket.on('error', () => other.destroy());
      socket.on('close', () => {
        sockets.delete(socket);
        other.destroy();
      });
      if (!stalled) socket.pipe(other);
    }
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const through = new URL(databaseUrl);
  through.host = `127.0.0.1:${port}`;

  const cut = () => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
  return {
    databaseUrl: through.href,
    cut,
    stall() {
      stalled = true;
      for (const socket of sockets) socket.unpipe();
    },
    async mend() {
      stalled = false;
      if (!server.listening) await once(server.listen(port, '127.0.0.1'), 'listening');
    },
    [Symbol.dispose]: cut,
  };
}

export type DatabaseProxy = Disposable & {
  /** The server's URL by way of the proxy. */
  databaseUrl: string;
  cut(): void;
  stall(): void;
  mend(): Promise<void>;
};
