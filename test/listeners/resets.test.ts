import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { startListeners } from '../support/listeners.ts';
import { until } from '../support/until.ts';

/** How far a client may come: an end within the preface of HTTP/2 is refused when `headersMs` are over. */
const beginnings: [string, string][] = [
  ['nothing', ''],
  ['a part of the preface', 'PRI * HTTP'],
  ['a whole preface', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ['a part of a request', 'GET / HTTP/1.1\r\nhost: a\r\n'],
  ['a request', 'GET / HTTP/1.1\r\nhost: a\r\n\r\n'],
  ['no HTTP', '\x16\x03\x01 ...\r\n\r\n'],
];

const ends: [string, (socket: Socket) => Promise<void>][] = [
  ['resets at once', async (socket) => reset(socket)],
  ['resets after its end', async (socket) => reset(socket.end())],
  [
    'resets once the server has ended it',
    async (socket) => {
      await Promise.race([once(socket, 'end'), once(socket, 'close')]);
      reset(socket);
    },
  ],
];

describe.each(beginnings)('a connection that sends %s', (_, sent) => {
  it.each(ends)('and %s is forgotten, and the process serves on', async (_, end) => {
    const faults: unknown[] = [];
    const onFault = (error: unknown) => faults.push(error);
    process.on('uncaughtException', onFault);
    const timeOuts = {
      headersMs: 300,
      checkEveryMs: 50,
      http2CheckMs: 50,
      http1IdleMs: 300,
      http2IdleMs: 300,
      lingerMs: 300,
    };
    await using listeners = await startListeners({ timeOuts });

    for (const url of [listeners.url, listeners.grpcUrl]) {
      const { hostname, port } = new URL(url);
      const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
      socket.on('error', () => undefined).resume();
      await once(socket, 'connect');
      socket.write(sent);
      await end(socket);
      await until(() => socket.closed);
    }

    expect((await fetch(listeners.url)).status).toBe(404);
    process.off('uncaughtException', onFault);
    expect(faults).toEqual([]);
  });
});

function reset(socket: Socket): void {
  socket.resetAndDestroy();
}
