import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect, type Http2ServerRequest, type Http2ServerResponse, type Http2Stream } from 'node:http2';
import { describe, expect, it } from 'vitest';
import { Reason } from '../../gen/headlessforms/v1/errors_pb.js';
import { type Bounds, standardBounds } from '../../src/admission/bounds.ts';
import { CutOff, readBody, readParts, setKnownCaller } from '../../src/admission/read-body.ts';
import { reasonOf } from '../../src/domain/errors/failure.ts';
import { collectGarbage } from '../support/garbage.ts';
import { startListeners } from '../support/listeners.ts';
import { until } from '../support/until.ts';
import { http2Acknowledgement, http2Part, http2Reset, openHttp2, openSocket } from '../support/wire.ts';

const KIB = 1024;

/** Each body costs 4 KiB beside its bytes. */
const bounds: Bounds = {
  client: { ...standardBounds.client, bodyBytes: 50 * KIB },
  strangers: { ...standardBounds.strangers, bodyBytes: 100 * KIB },
  known: { bodyBytes: 100 * KIB },
  arrival: { graceMs: 20_000, bytesPerSecond: 1_000 },
};

describe('the bytes of bodies that have not arrived', () => {
  it('are bounded for each client, and free when their connection is gone', async () => {
    await using server = await startReading();
    const held = await begin(server, { bytes: 40 * KIB, from: '127.0.0.2' });
    await until(async () => (await send(server, { bytes: 10 * KIB, from: '127.0.0.2' })) === 'over budget');

    const others = await send(server, { bytes: 10 * KIB, from: '127.0.0.3' });
    held[Symbol.dispose]();

    expect(others).toBe('10240');
    await until(async () => (await send(server, { bytes: 10 * KIB, from: '127.0.0.2' })) === '10240');
  });

  it('are bounded in total, apart from those of callers with a key', async () => {
    await using server = await startReading();
    using held = new DisposableStack();
    for (const last of [2, 3, 4]) {
      held.use(await begin(server, { bytes: 25 * KIB, from: `127.0.0.${last}` }));
    }

    await until(async () => (await send(server, { bytes: 10 * KIB, from: '127.0.0.5' })) === 'over budget');

    expect(await send(server, { bytes: 90 * KIB, head: 'x-known: yes\r\n' })).toBe(String(90 * KIB));
    expect(await send(server, { bytes: 100 * KIB, head: 'x-known: yes\r\n' })).toBe('over budget');
  });

  it('are free after an answer and after a refusal', async () => {
    await using server = await startReading();

    for (let round = 0; round < 5; round += 1) {
      expect(await send(server, { bytes: 40 * KIB })).toBe(String(40 * KIB));
      expect(await send(server, { bytes: 60 * KIB })).toBe('over budget');
    }
  });

  it('count for more than they are where there are few', async () => {
    await using server = await startReading();
    using held = new DisposableStack();
    for (let count = 0; count < 12; count += 1) held.use(await begin(server, { bytes: 1 }));

    await until(async () => (await send(server, { bytes: 1 })) === 'over budget');
  });

  it('count as at most a fourth more where their number is not announced', async () => {
    await using server = await startReading({ client: { ...bounds.client, bodyBytes: 49 * KIB } });
    using connection = await openSocket(server.url);

    connection.socket.write(chunked({}, Array(36).fill(Buffer.alloc(KIB))));
    await connection.ended;

    expect(bodyOf(connection.text())).toBe(String(36 * KIB));
  });

  it('are counted over HTTP/2, and free when their stream is cancelled', async () => {
    await using server = await startReading();
    using client = openHttp2(server.grpcUrl);
    const send = async () => String((await client.call('/', [Buffer.alloc(15 * KIB)])).body);
    using connection = await openSocket(server.grpcUrl);

    connection.socket.write(http2Part('/', {}, Buffer.alloc(15 * KIB), Buffer.alloc(15 * KIB)));
    // The acknowledgement of its settings, which came with the body.
    await until(() => connection.text().endsWith(String(http2Acknowledgement())));
    await until(async () => (await send()) === 'over budget');
    connection.socket.write(http2Reset(8));

    await until(async () => (await send()) === String(15 * KIB));
  });
});

describe.each([
  ['whole', ''],
  ['in parts', 'x-parts: yes\r\n'],
])('a body that is read %s', (_, head) => {
  const quick = { ...bounds, arrival: { graceMs: 300, bytesPerSecond: 2_000 } };

  it('may take its time at the least rate', async () => {
    await using server = await startReading(quick);
    using connection = await begin(server, { bytes: 0, announced: 4_000, head });

    const drip = setInterval(() => connection.socket.write(Buffer.alloc(100)), 25);
    await connection.ended;
    clearInterval(drip);

    expect(bodyOf(connection.text())).toBe('4000');
  });

  it.each([
    ['stops', 0],
    ['goes on below the least rate', 10],
  ])('is refused if it %s, however fast it began', async (_what, bytes) => {
    await using server = await startReading(quick);
    using connection = await begin(server, { bytes: 20 * KIB, announced: 40 * KIB, head });

    const drip = setInterval(() => connection.socket.write(Buffer.alloc(bytes)), 25);
    await connection.ended;
    clearInterval(drip);

    expect(bodyOf(connection.text())).toBe('too slow');
  });

  it('can’t be read if it is cut off', async () => {
    await using server = await startReading();
    using connection = await begin(server, { bytes: 1, announced: 100, head });

    connection.socket.destroy();

    await until(() => server.read.includes('cut off'));
  });
});

describe.each([
  ['whole', {}],
  ['in parts', { 'x-parts': 'yes' }],
])('a body that is cut into pieces and read %s', (_, headers) => {
  const roomy = {
    client: { ...bounds.client, bodyBytes: 1024 * KIB },
    strangers: { ...bounds.strangers, bodyBytes: 1024 * KIB },
  };

  it.each([
    ['many that are small', 3_000, 100],
    ['some that are tiny', 1_000, 1],
  ])('is read over HTTP/1.1 and HTTP/2: %s', async (_what, pieces, bytes) => {
    await using server = await startReading(roomy);
    using connection = await openSocket(server.url);
    using http2 = openHttp2(server.grpcUrl);
    const body = Array.from({ length: pieces }, () => Buffer.alloc(bytes));

    connection.socket.write(chunked(headers, body));
    await connection.ended;
    const { body: answer } = await http2.call('/', body, headers);

    expect([bodyOf(connection.text()), String(answer)]).toEqual(Array(2).fill(String(pieces * bytes)));
  });

  it('ends its connection if it is too many that are tiny', async () => {
    await using server = await startReading(roomy);
    using connection = await openSocket(server.url);
    using overHttp2 = await openSocket(server.grpcUrl);
    const tiny = Array.from({ length: 20_000 }, () => Buffer.alloc(1));

    connection.socket.write(chunked(headers, tiny));
    overHttp2.socket.write(http2Part('/', headers, ...tiny));
    await Promise.all([connection.ended, overHttp2.ended]);

    expect(connection.text()).toBe('');
    expect(server.read).toEqual(['cut off', 'cut off']);
  });
});

function chunked(headers: object, body: Buffer[]): Buffer {
  const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.concat([
    Buffer.from(`POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n${head.join('')}\r\n`),
    ...body.flatMap((piece) => [Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n')]),
    Buffer.from('0\r\n\r\n'),
  ]);
}

it('watches a body no longer than until its answer, however little of it was read', async () => {
  let watchedWhileRead = 0;
  async function answerAfterOne(request: Request, response: Response): Promise<void> {
    await readParts(request, 0).next();
    watchedWhileRead = server.admission.arrivals.count();
    if (!('stream' in response)) response.setHeader('connection', 'close');
    response.end('enough');
  }
  const http = (request: Request, response: Response) => void answerAfterOne(request, response);
  await using server = await startListeners({ http, bounds });

  const answer = await send(server, { bytes: 10 * KIB });

  expect([answer, watchedWhileRead]).toEqual(['enough', 1]);
  await until(() => server.admission.arrivals.count() === 0);
});

it('lets go of a request of HTTP/2 when it is answered, though its stream is still held', async () => {
  const calls: { stream: Http2Stream; request: WeakRef<Request> }[] = [];
  async function answer(request: Http2ServerRequest, response: Http2ServerResponse): Promise<void> {
    calls.push({ stream: response.stream, request: new WeakRef(request) });
    response.end(await wholeOf(request));
  }
  await using server = await startListeners({
    grpc: (request, response) => void answer(request, response),
  });
  using client = openHttp2(server.grpcUrl);

  for (let count = 0; count < 10; count += 1) await client.call('/', [Buffer.alloc(KIB)]);

  await until(() => {
    collectGarbage();
    return calls.every(({ request }) => request.deref() === undefined);
  });
  expect(calls.map(({ stream }) => stream.closed)).toEqual(calls.map(() => true));
});

it('drops what is left of a body of HTTP/2 that was refused while no more of it had arrived', async () => {
  async function refuse(request: Http2ServerRequest, response: Http2ServerResponse): Promise<void> {
    request.read(0);
    await until(() => request.readableLength === 2 * KIB);
    response.end(await readBody(request, KIB).catch(whyUnread));
  }
  await using server = await startListeners({
    grpc: (request, response) => void refuse(request, response),
  });
  const session = connect(server.grpcUrl);
  const stream = session.request({ ':method': 'POST', ':path': '/' });

  stream.write(Buffer.alloc(KIB));
  stream.write(Buffer.alloc(KIB));
  const [answer] = await once(stream, 'data');
  stream.end(Buffer.alloc(512 * KIB));

  expect(String(answer)).toBe('too large');
  // Before the time for it is up.
  await until(() => stream.destroyed, 10_000);
  session.close();
});

it('drops what is left of a body after its answer, and ends a connection that sends without end', async () => {
  await using listeners = await startListeners({ http: (_request, response) => response.end('enough') });
  using little = await openSocket(listeners.url);
  using much = await openSocket(listeners.url);

  little.socket.write(headOf(8 * 1024 * KIB));
  little.socket.write(Buffer.alloc(8 * 1024 * KIB));
  little.socket.write('GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n');
  await little.ended;
  much.socket.write('POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n');
  for (let sent = 0; sent < 64 && !much.socket.destroyed; sent += 1) {
    const chunk = Buffer.concat([Buffer.from('100000\r\n'), Buffer.alloc(1024 * KIB), Buffer.from('\r\n')]);
    await Promise.race([much.ended, new Promise((written) => much.socket.write(chunk, written))]);
  }
  await much.ended;

  expect(little.text().match(/HTTP\/1.1 200 OK/g)).toHaveLength(2);
  expect(much.text().match(/HTTP\/1.1 200 OK/g)).toHaveLength(1);
});

/** Reads bodies of at most 1 MiB, and answers how long they are or why they can't be read. */
async function startReading(given: Partial<Bounds> = {}) {
  const read: string[] = [];
  async function answer(request: Request, response: Response): Promise<void> {
    if (request.headers['x-known'] !== undefined) setKnownCaller(request);
    read.push(request.headers['x-parts'] === undefined ? await wholeOf(request) : await partsOf(request));
    if (!('stream' in response)) response.setHeader('connection', 'close');
    response.end(read.at(-1) ?? '');
  }
  const handler = (request: Request, response: Response) => void answer(request, response);
  return Object.assign(
    await startListeners({ http: handler, grpc: handler, bounds: { ...bounds, ...given } }),
    {
      read,
    },
  );
}

async function wholeOf(request: Request): Promise<string> {
  return readBody(request, 1024 * KIB).then(({ length }) => String(length), whyUnread);
}

async function partsOf(request: Request): Promise<string> {
  let size = 0;
  try {
    for await (const part of readParts(request, 0)) size += part.length;
    return String(size);
  } catch (error) {
    return whyUnread(error);
  }
}

function whyUnread(error: unknown): string {
  if (error instanceof CutOff) return 'cut off';
  const reason = reasonOf(error);
  if (reason === Reason.BAD_REQUEST) return 'too slow';
  if (reason === Reason.UNAVAILABLE) return 'over budget';
  return reason === Reason.TOO_LARGE ? 'too large' : String(error);
}

/** A request of which that many bytes are sent, one less than it announces unless it says otherwise. */
async function begin({ url }: { url: string }, { bytes, from, head, announced = bytes + 1 }: Sent) {
  const connection = await openSocket(url, from);
  connection.socket.write(headOf(announced, head));
  connection.socket.write(Buffer.alloc(bytes));
  return connection;
}

/** Sends a whole request and gives the body of the answer. */
async function send(server: { url: string }, sent: Sent): Promise<string> {
  using connection = await begin(server, { ...sent, announced: sent.bytes });
  await connection.ended;
  return bodyOf(connection.text());
}

function headOf(length: number, head = ''): string {
  return `POST / HTTP/1.1\r\nhost: a\r\ncontent-length: ${length}\r\n${head}\r\n`;
}

function bodyOf(reply: string): string {
  return reply.slice(reply.indexOf('\r\n\r\n') + 4);
}

type Sent = { bytes: number; from?: string; head?: string; announced?: number };
type Request = IncomingMessage | Http2ServerRequest;
type Response = ServerResponse | Http2ServerResponse;
