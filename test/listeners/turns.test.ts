import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { connect } from 'node:http2';
import { expect, it } from 'vitest';
import { startListeners } from '../support/listeners.ts';
import { until } from '../support/until.ts';
import { http2Cancelled, http2Preface, openHttp2, openSocket } from '../support/wire.ts';

const CALLS = 100;
const aKey = { authorization: 'Bearer hfs_1' };

it.each([
  ['a few calls of a client', {}, true, 16],
  ['a few calls that show a key of a client who has shown no valid one', aKey, false, 16],
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

  expect(begun).toEqual([...Array.from({ length: 16 }, () => '/'), '/last']);
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
