import { once } from 'node:events';
import { type ClientHttp2Session, connect } from 'node:http2';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { startListeners } from '../support/listeners.ts';
import { until } from '../support/until.ts';
import {
  http2Acknowledgement,
  http2Cancelled,
  http2End,
  http2Goaway,
  http2Part,
  http2Ping,
  http2Preface,
  openSocket,
} from '../support/wire.ts';

const timeOuts = {
  headersMs: 200,
  http2IdleMs: 200,
  stalledMs: 200,
  pingAfterMs: 100,
  pongMs: 100,
  lingerMs: 100,
  http2CheckMs: 20,
};

const whole = Buffer.concat([http2Part('/', {}, Buffer.alloc(0)), http2End(), http2Acknowledgement()]);

describe.each(['grpcUrl', 'url'] as const)('a connection over HTTP/2 to the port of %s', (port) => {
  it.each([
    ['sends nothing', Buffer.alloc(0)],
    ['begins and does not take the settings of the server', http2Preface()],
    ['makes no call', Buffer.concat([http2Preface(), http2Acknowledgement()])],
    ['has made its calls', whole],
    ['says that it goes away', Buffer.concat([http2Preface(), http2Acknowledgement(), http2Goaway()])],
  ])('that %s is ended, though it stays open on its own side', async (_, sent) => {
    await using listeners = await startListeners({ timeOuts });
    using connection = await openSocket(listeners[port]);
    connection.socket.write(sent);

    await connection.ended;
    await until(() => connection.isGone());
  });

  it('that is silent while a call is under way is ended, if it does not answer a ping', async () => {
    await using listeners = await startListeners({ timeOuts, grpc: () => undefined });
    using connection = await openSocket(listeners[port]);
    connection.socket.write(whole);

    await connection.ended;
    await until(() => connection.isGone());
  });

  it('that is silent but answers pings keeps its call, longer than any time-out', async () => {
    const called = Promise.withResolvers<() => void>();
    const pongMs = 2_000;
    await using listeners = await startListeners({
      timeOuts: { ...timeOuts, pongMs },
      grpc: (_request, response) => called.resolve(() => response.end('at last')),
    });
    using client = openSession(listeners[port]);
    const stream = client.session.request({ ':path': '/' });

    const answer = await called.promise;
    const begun = performance.now();
    while (performance.now() - begun < 1.5 * pongMs) await once(client.session, 'ping');
    answer();

    expect(await text(stream)).toBe('at last');
  });

  it('that never takes an answer loses its stream, and keeps the others', async () => {
    await using listeners = await startListeners({
      timeOuts: { ...timeOuts, http2IdleMs: 20_000, pongMs: 20_000 },
      grpc: (request, response) =>
        void response.end(request.url === '/' ? Buffer.alloc(1024 * 1024) : 'small'),
    });
    using client = openSession(listeners[port]);
    const stalled = client.session.request({ ':path': '/' });
    stalled.on('error', () => undefined);

    await once(stalled, 'close');

    expect(stalled.rstCode).not.toBe(0);
    expect(await text(client.session.request({ ':path': '/small' }))).toBe('small');
  });

  it('does not hold up a stop, though it stays open on its own side', async () => {
    const stopped = await startListeners({ timeOuts });
    using connection = await openSocket(stopped[port]);
    connection.socket.write(Buffer.concat([http2Preface(), http2Acknowledgement()]));
    await until(() => connection.text().endsWith(String(http2Acknowledgement())));

    await stopped.close(60_000);
  });

  it('may have 100 streams', async () => {
    await using listeners = await startListeners({});
    using client = openSession(listeners[port]);

    const [settings] = await once(client.session, 'remoteSettings');

    expect(settings.maxConcurrentStreams).toBe(100);
  });

  it('that cancels its calls as it makes them is ended', async () => {
    await using listeners = await startListeners({ grpc: () => undefined });
    using connection = await openSocket(listeners[port]);

    connection.socket.write(Buffer.concat([http2Preface(), http2Cancelled(1_000)]));

    await connection.ended;
  });

  it('that sends pings without end is ended, though it takes every answer', async () => {
    await using listeners = await startListeners({});
    using connection = await openSocket(listeners[port]);
    const { socket, ended } = connection;
    const pings = Buffer.concat(Array(500).fill(http2Ping()));
    socket.write(Buffer.concat([http2Preface(), http2Acknowledgement()]));

    for (let sent = 0; sent <= 10_000; sent += 500) {
      socket.write(pings);
      await Promise.race([once(socket, 'data'), ended]);
    }

    await ended;
  });
});

function openSession(url: string): Disposable & { session: ClientHttp2Session } {
  const session = connect(url);
  session.on('error', () => undefined);
  return { session, [Symbol.dispose]: () => session.destroy() };
}
