import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { until } from './until.ts';

/**
 * Starts a receiver of webhooks on 127.0.0.1, on a free port if none is given. It keeps what arrives, whole and in
 * order, and answers as told: by default 204.
 */
export async function startReceiver(
  answer: Answerer = (_, response) => void response.writeHead(204).end(),
  givenPort = 0,
) {
  const received: Received[] = [];
  let connections = 0;
  const server = createServer((request, response) => void receive(request, response));
  const receive = async (request: IncomingMessage, response: ServerResponse) => {
    const body = await text(request);
    const hit = { path: request.url ?? '', headers: request.headers, body, at: Date.now() };
    received.push(hit);
    answer({ ...hit, count: received.length, request }, response);
  };
  server.on('connection', () => {
    connections += 1;
  });
  server.listen(givenPort, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;

  return {
    url: `http://127.0.0.1:${port}`,
    port,
    received,
    /** How many connections were made, with or without a request. */
    connections: () => connections,
    /** Waits until so many requests have arrived, and returns them. */
    async expectRequests(count: number, withinMs = 30_000): Promise<Received[]> {
      await until(
        () => received.length >= count,
        withinMs,
        () => `${received.length} of ${count} requests`,
      );
      return received;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  } satisfies Receiver;
}

export type Received = { path: string; headers: IncomingHttpHeaders; body: string; at: number };

export type Answerer = (
  hit: Received & { count: number; request: IncomingMessage },
  response: ServerResponse,
) => void;

type Receiver = AsyncDisposable & {
  url: string;
  port: number;
  received: Received[];
  connections(): number;
  expectRequests(count: number, withinMs?: number): Promise<Received[]>;
};
