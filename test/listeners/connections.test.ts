import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { startListeners } from '../support/listeners.ts';
import { startService } from '../support/server.ts';
import { until } from '../support/until.ts';
import { type HeldSocket, http2Preface, openSocket } from '../support/wire.ts';

describe('the number of connections', () => {
  it('is bounded for each client, over both ports, and each that closes makes room', async () => {
    await using listeners = await startListeners({ maxConnectionsPerClient: 2 });
    using first = await openSocket(listeners.url);
    using second = await openSocket(listeners.url);
    second.socket.write(http2Preface());
    await until(() => second.text() !== '');

    const beyond = [await openSocket(listeners.url), await openSocket(listeners.grpcUrl)];
    await Promise.all(beyond.map(closed));
    using other = await openSocket(listeners.url, '127.0.0.2');
    expect(await answerOf(other)).toMatch(/^HTTP\/1.1 404 /);
    first[Symbol.dispose]();

    const after = await until(async () => {
      using next = await openSocket(listeners.url);
      return await answerOf(next);
    });
    expect(after).toMatch(/^HTTP\/1.1 404 /);
  });

  it('is bounded in total, and a warning says so once', async () => {
    const logged: string[] = [];
    const log = pino({}, { write: (line) => logged.push(line) });
    await using listeners = await startListeners({ maxConnections: 2, log });
    using _first = await openSocket(listeners.url, '127.0.0.2');
    using _second = await openSocket(listeners.url, '127.0.0.3');

    for (let count = 0; count < 3; count += 1) await closed(await openSocket(listeners.url));

    expect(logged.map((line) => JSON.parse(line))).toMatchObject([
      { level: 40, msg: 'Too many connections are open; new ones are closed at once' },
    ]);
  });

  it.each([
    ['a proxy that is named', '127.0.0.2', '127.0.0.2'],
    ['any, where hops are believed', '1', '127.0.0.1'],
  ])('has no bound for %s', async (_, trusted, from) => {
    await using service = await startService({
      env: { MAX_CONNECTIONS_PER_CLIENT: '1', TRUST_PROXY: trusted },
    });
    using _first = await openSocket(service.url, from);
    using second = await openSocket(service.url, from);

    expect(await answerOf(second)).toMatch(/^HTTP\/1.1 404 /);
  });

  it('has a bound for who is no such proxy', async () => {
    await using service = await startService({
      env: { MAX_CONNECTIONS_PER_CLIENT: '1', TRUST_PROXY: '127.0.0.2' },
    });
    using _first = await openSocket(service.url, '127.0.0.3');

    await closed(await openSocket(service.url, '127.0.0.3'));
  });
});

describe('a connection over HTTP/1.1', () => {
  const timeOuts = { headersMs: 100, http1IdleMs: 100, stalledMs: 500, lingerMs: 100, checkEveryMs: 20 };

  it.each([
    ['does not end its headers', 'GET /nothing HTTP/1.1\r\nhost: a\r\n'],
    ['sends what is not HTTP', 'Hello?\r\n\r\n'],
    ['begins as HTTP/2 does and goes on otherwise', 'PRI * HTTP/2.0\r\n\r\nGET /nothing HTTP/1.1\r\n\r\n'],
    ['begins as HTTP/2 does and stops', 'PRI * HTTP/2.0\r\n'],
  ])('that %s is told so and ended, though it stays open on its own side', async (_, sent) => {
    await using listeners = await startListeners({ timeOuts });
    using connection = await openSocket(listeners.url);
    connection.socket.write(sent);

    await connection.ended;
    expect(connection.text()).toMatch(
      /^HTTP\/1.1 400 Bad Request\r\n[\s\S]*x-request-id: [\w-]{36}\r\n[\s\S]*"reason":"bad_request"/i,
    );
    await until(() => connection.isGone());
  });

  it('that sends nothing is ended without an answer', async () => {
    await using listeners = await startListeners({ timeOuts });
    using connection = await openSocket(listeners.url);

    await connection.ended;
    expect(connection.text()).toBe('');
    await until(() => connection.isGone());
  });

  it('that ends before its first request is whole is told so', async () => {
    await using listeners = await startListeners({ timeOuts });
    using connection = await openSocket(listeners.url);

    connection.socket.end('PRI * HTTP');

    await connection.ended;
    expect(connection.text()).toMatch(/^HTTP\/1.1 400 Bad Request\r\n/);
  });

  it('that has been answered takes a further request, however both are divided', async () => {
    await using listeners = await startListeners({});
    using connection = await openSocket(listeners.url);

    for (const part of [
      'P',
      'R',
      'OPFIND / HTTP/1.1\r\nho',
      'st: a\r\n\r\nGET /nothing HTTP/1.1\r\nhost: a\r\n\r\n',
    ]) {
      await new Promise((written) => connection.socket.write(part, written));
    }

    await until(() => connection.text().match(/HTTP\/1.1 404 /g)?.length === 2);
  });

  it('that sends requests without waiting has one handled at a time, in their order', async () => {
    let [handling, most] = [0, 0];
    await using listeners = await startListeners({
      http: (request, response) => {
        handling += 1;
        most = Math.max(most, handling);
        response.once('close', () => {
          handling -= 1;
        });
        setImmediate(() => response.end(`the answer to ${request.url}`));
      },
    });
    using connection = await openSocket(listeners.url);
    const paths = Array.from({ length: 100 }, (_, index) => `/${index}`);

    connection.socket.write(paths.map((path) => `GET ${path} HTTP/1.1\r\nhost: a\r\n\r\n`).join(''));

    await until(() => connection.text().includes('the answer to /99'));
    expect(connection.text().match(/(?<=the answer to )\/\d+/g)).toEqual(paths);
    expect(most).toBe(1);
  });

  it('that has more than a hundred requests waiting is ended', async () => {
    let handled = 0;
    await using listeners = await startListeners({
      http: () => {
        handled += 1;
      },
    });
    using connection = await openSocket(listeners.url);

    using parsed = countParsed();
    connection.socket.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n'.repeat(1_500));

    await until(() => connection.isGone());
    expect(handled).toBe(1);
    expect(parsed.count).toBe(102);
  });

  it('that is told why it ends has nothing parsed that it sent behind, and gets to read it', async () => {
    await using listeners = await startListeners({ timeOuts });
    using connection = await openSocket(listeners.url);

    using parsed = countParsed();
    const refused = 'GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n';
    connection.socket.write(refused + 'GET / HTTP/1.1\r\nhost: a\r\n\r\n'.repeat(1_500));

    await connection.ended;
    expect(connection.text()).toMatch(/^HTTP\/1.1 400 [\s\S]*The request names more than one host/);
    await until(() => connection.isGone());
    expect(parsed.count).toBe(1);
  });

  it('that never takes its answer is ended', async () => {
    const answered = Promise.withResolvers<Socket>();
    await using listeners = await startListeners({
      timeOuts,
      http: (request, response) => {
        answered.resolve(request.socket);
        response.end(Buffer.alloc(64 * 1024 * 1024));
      },
    });
    using connection = await openSocket(listeners.url);
    connection.socket.pause().write('GET /nothing HTTP/1.1\r\nhost: a\r\n\r\n');

    const side = await answered.promise;
    await until(() => side.destroyed);
  });
});

/** How many requests of HTTP/1.1 the process makes objects of. */
function countParsed(): { count: number } & Disposable {
  const parsed = { count: 0, [Symbol.dispose]: () => unsubscribe(channel, add) };
  const channel = 'http.server.request.start';
  const add = () => {
    parsed.count += 1;
  };
  subscribe(channel, add);
  return parsed;
}

/** Sends a request and gives what comes back; empty if that is nothing. */
async function answerOf({ socket, ended, text }: HeldSocket): Promise<string> {
  socket.write('GET /nothing HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n');
  await ended;
  return text();
}

/** Fails unless the server closes the connection without a word. */
async function closed(held: HeldSocket): Promise<void> {
  using connection = held;
  await connection.ended;
  expect(connection.text()).toBe('');
}
