import { once } from 'node:events';
import { createServer, type IncomingMessage, request as requestOf, type ServerResponse } from 'node:http';
import {
  connect,
  createServer as createHttp2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import type { TestService } from '../support/server.ts';

/**
 * Stands before both ports of a service and loses the reply to every other call: the call is done, and its connection is
 * cut. Streams are not for it, since it reads a reply whole.
 */
export async function startLossyProxy(service: TestService): Promise<LossyProxy> {
  const open = new AsyncDisposableStack();
  const made = new Map<string, number>();
  const isLost = (path: string) => {
    const calls = (made.get(path) ?? 0) + 1;
    made.set(path, calls);
    return calls % 2 === 1;
  };

  async function pass(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method, url: path = '/', headers } = request;
    const forwarded = requestOf(new URL(path, service.url), { method, headers });
    forwarded.end(await buffer(request));
    const [reply] = (await once(forwarded, 'response')) as [IncomingMessage];
    const content = await buffer(reply);
    if (method === 'POST' && isLost(path)) request.socket.destroy();
    else response.writeHead(reply.statusCode ?? 500, reply.headers).end(content);
  }
  const http = createServer((request, response) => {
    pass(request, response).catch(() => request.socket.destroy());
  });

  async function passHttp2(stream: ServerHttp2Stream, asked: IncomingHttpHeaders): Promise<void> {
    const { ':path': path = '/', ...headers } = asked;
    const body = await buffer(stream);
    // One for each call: the service closes idle connections.
    const upstream = connect(service.grpcUrl);
    const forwarded = upstream.request({ ...headers, ':path': path });
    forwarded.end(body);
    let head: IncomingHttpHeaders = {};
    let trailers: IncomingHttpHeaders | undefined;
    forwarded.on('response', (received) => {
      head = received;
    });
    forwarded.on('trailers', (received) => {
      trailers = received;
    });
    const content = await buffer(forwarded);
    upstream.close();
    if (isLost(path)) {
      stream.session?.destroy();
      return;
    }
    stream.respond(head, { waitForTrailers: trailers !== undefined });
    stream.on('wantTrailers', () => stream.sendTrailers(trailers ?? {}));
    stream.end(content);
  }
  const http2 = createHttp2Server();
  http2.on('stream', (stream, headers) => {
    passHttp2(stream, headers).catch(() => stream.session?.destroy());
  });

  for (const server of [http, http2]) {
    await once(server.listen(0, '127.0.0.1'), 'listening');
    open.defer(() => void server.close());
  }
  const addressOf = (server: typeof http | typeof http2) =>
    `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url: addressOf(http),
    grpcUrl: addressOf(http2),
    takeCalls() {
      const calls = Object.fromEntries(made);
      made.clear();
      return calls;
    },
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  };
}

export type LossyProxy = AsyncDisposable & {
  url: string;
  grpcUrl: string;
  /** How many calls came by path since the last time, each that was made again among them. */
  takeCalls(): Record<string, number>;
};
