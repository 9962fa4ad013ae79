import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { type ClientHttp2Session, connect } from 'node:http2';
import { connect as connectTcp } from 'node:net';
import { describe, expect, it } from 'vitest';
import { standardBounds } from '../../src/admission/bounds.ts';
import { startListeners } from '../support/listeners.ts';
import { until } from '../support/until.ts';
import { http2Cancelled, http2Preface, openHttp2, openSocket } from '../support/wire.ts';

const CALLS = 100;
const aKey = { authorization: 'Bearer hfs_1' };

it.each([
  ['a few calls of a client', {}, true, 6],
  ['a few calls that show a key of a client who has shown no valid one', aKey, false, 6],
  ['all calls that show a key', aKey, true, CALLS],
])('begins %s in a turn of the event loop, and answers all', async (_what, headers, isKnown, expected) => {
  const turns = countTurns();
  const begun: number[] = [];
  await using listeners = await startListeners({
    isKnownClient: () => isKnown,
    grpc: (_request, response) => {
      begun.push(turns.count());
      response.end();
    },
  });
  const session = connect(listeners.grpcUrl);
  await once(session, 'remoteSettings');

  const streams = Array.from({ length: CALLS }, () => session.request({ ':path': '/', ...headers }));
  const answers = await Promise.all(streams.map((stream) => once(stream.resume(), 'response')));
  session.destroy();
  turns.stop();

  const perTurn = Object.values(Object.groupBy(begun, String)).map((calls) => calls?.length ?? 0);
  expect(answers.map(([{ ':status': status }]) => status)).toEqual(answers.map(() => 200));
  expect(Math.max(...perTurn)).toBe(expected);
});

it('lets a client have two hundred calls under way, and begins the others as those end', async () => {
  const begun: Record<string, ServerResponse[]> = { '/held': [], '/other': [] };
  await using listeners = await startListeners({
    http: (request, response) => void begun[request.url ?? '']?.push(response),
  });
  using sockets = new DisposableStack();
  const ask = async (path: string, address?: string) => {
    const { socket } = sockets.use(await openSocket(listeners.url, address));
    socket.write(`GET ${path} HTTP/1.1\r\nhost: a\r\n\r\n`);
  };
  const held = () => begun['/held']?.length;

  await Promise.all(Array.from({ length: 202 }, () => ask('/held')));
  await until(() => held() === 200);
  await ask('/other', '127.0.0.2');
  await until(() => begun['/other']?.length === 1);
  const heldBefore = held();
  begun['/held']?.[0]?.end();
  await until(() => held() === 201);
  begun['/held']?.[1]?.destroy();

  await until(() => held() === 202);
  expect(heldBefore).toBe(200);
});

it('does not begin calls that were cancelled before their turn', async () => {
  const begun: string[] = [];
  await using listeners = await startListeners({
    grpc: ({ url }, response) => {
      begun.push(url);
      response.end();
    },
  });
  using connection = await openSocket(listeners.grpcUrl);
  using other = openHttp2(listeners.grpcUrl);

  connection.socket.write(Buffer.concat([http2Preface(), http2Cancelled(50)]));
  await until(() => begun.length > 0);
  await other.call('/last', []);

  expect(begun).toEqual([...Array.from({ length: 6 }, () => '/'), '/last']);
});

/** Counts the turns of the event loop. */
function countTurns() {
  let count = 0;
  let next = setImmediate(turn);
  function turn() {
    count += 1;
    next = setImmediate(turn);
  }
  return { count: () => count, stop: () => clearImmediate(next) };
}

describe('requests of a client that wait', () => {
  const client = { begunInSlice: 16, underWay: 2, waiting: { requests: 3, headerBytes: 10_000 } };
  const bounds = {
    ...standardBounds,
    client: { ...standardBounds.client, ...client },
    strangers: { ...standardBounds.strangers, waiting: { requests: 5, headerBytes: 20_000 } },
  };

  /** Listeners whose handlers answer nothing, and what asks them by HTTP/2 for answers with their status. */
  async function startHolding() {
    await using opened = new AsyncDisposableStack();
    const begun: string[] = [];
    const limits: string[] = [];
    const hold = ({ url = '' }: { url?: string | undefined }) => void begun.push(url);
    const listeners = opened.use(
      await startListeners({
        http: hold,
        grpc: hold,
        bounds,
        metrics: { onLimit: (limit) => limits.push(limit) },
      }),
    );
    const { hostname: host, port } = new URL(listeners.grpcUrl);
    const owned = opened.move();
    return {
      ...listeners,
      begun,
      limits,
      connectFrom(localAddress: string) {
        const session = connect(listeners.grpcUrl, {
          createConnection: () => connectTcp({ host, port: Number(port), localAddress }),
        });
        owned.defer(() => session.destroy());
        return session;
      },
      [Symbol.asyncDispose]: () => owned.disposeAsync(),
    };
  }

  /** Sends headers alone; the status of the answer, once the stream is closed; undefined if there was none. */
  function ask(session: ClientHttp2Session, path: string, headers = {}) {
    const stream = session.request({ ':path': path, ':method': 'POST', ...headers });
    let status: number | undefined;
    stream.on('response', (answer) => (status = answer[':status']));
    stream.on('error', () => undefined);
    return once(stream.resume(), 'close').then(() => status);
  }

  it('are so many over all its connections, beyond which streams are refused and reset at once; and of all clients', async () => {
    await using server = await startHolding();
    const [one, two] = [server.connectFrom('127.0.0.1'), server.connectFrom('127.0.0.1')];
    const other = server.connectFrom('127.0.0.2');

    const held = ['/0', '/1', '/2'].map((path) => ask(one, path));
    await until(() => server.begun.length === 2);
    held.push(ask(two, '/3'), ask(two, '/4'));
    const refused = [await ask(two, '/refused'), await ask(one, '/refused')];
    held.push(...['/a', '/b', '/c', '/d'].map((path) => ask(other, path)));
    const refusedOfAll = await ask(other, '/refused');
    one.destroy();
    await until(() => server.begun.includes('/3') && server.begun.includes('/4'));
    held.push(...['/e', '/f', '/g'].map((path) => ask(two, path)));
    const refusedAgain = await ask(two, '/refused');

    expect([...refused, refusedOfAll, refusedAgain]).toEqual([429, 429, 429, 429]);
    expect(server.begun).not.toContain('/refused');
    expect(server.limits).toEqual(Array(4).fill('waiting_requests'));
    for (const session of [two, other]) session.destroy();
    expect(await Promise.all(held)).toEqual(held.map(() => undefined));
  });

  it('hold so many bytes of headers', async () => {
    await using server = await startHolding();
    const session = server.connectFrom('127.0.0.1');

    const held = ['/0', '/1'].map((path) => ask(session, path));
    await until(() => server.begun.length === 2);
    held.push(ask(session, '/2', { x: 'x'.repeat(9_000) }));
    const refused = await ask(session, '/refused', { x: 'x'.repeat(1_000) });
    session.destroy();

    expect(refused).toBe(429);
    await Promise.all(held);
  });

  it('wait for others on their connection over HTTP/1.1, too, and go with it', async () => {
    await using server = await startHolding();
    const get = (path: string) => `GET ${path} HTTP/1.1\r\nhost: a\r\n\r\n`;
    using first = await openSocket(server.url);
    using second = await openSocket(server.url);
    using third = await openSocket(server.url);

    first.socket.write(get('/0') + get('/1').repeat(3));
    await until(() => server.begun.length === 1);
    second.socket.write(get('/2'));
    await until(() => server.begun.length === 2);
    third.socket.write(get('/refused'));
    await third.ended;
    second.socket.write(get('/3'));
    await second.ended;
    first.socket.destroy();
    using fourth = await openSocket(server.url);
    using fifth = await openSocket(server.url);
    fourth.socket.write(get('/4') + get('/5').repeat(3));
    await until(() => server.begun.length === 3);
    fifth.socket.write(get('/6'));

    await until(() => server.begun.length === 4);
    expect(third.text()).toMatch(/^HTTP\/1\.1 429 .*\r\n(.*\r\n)*connection: close\r\n/i);
    expect(second.text()).toBe('');
    expect(server.begun).toEqual(['/0', '/2', '/4', '/6']);
    expect(server.limits).toEqual(Array(2).fill('waiting_requests'));
  });
});
