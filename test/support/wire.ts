import { once } from 'node:events';
import { type ClientHttp2Stream, connect, type IncomingHttpHeaders } from 'node:http2';
import { connect as connectTcp, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';

/** An HTTP/2 connection without a library for RPCs: tests choose the headers, and where frames end. */
export function openHttp2(url: string): Http2Connection {
  const session = connect(url);
  return {
    async call(path, frames, headers = {}, { method = 'POST', ended = true } = {}) {
      const stream = session.request({ ':method': method, ':path': path, ...headers });
      const answer = answerOf(stream);
      for (const frame of frames) await new Promise((written) => stream.write(frame, written));
      if (ended) stream.end();
      try {
        return await answer;
      } finally {
        // A stream that has ended closes by itself. Node 24 hangs if it is closed before all of it is sent.
        if (!ended) stream.close();
      }
    },
    [Symbol.dispose]: () => session.destroy(),
  };
}

/** A message as gRPC sends it, after its flags (1: compressed) and length. */
export function envelope(data: Uint8Array, flags = 0): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt8(flags);
  head.writeUInt32BE(data.length, 1);
  return Buffer.concat([head, data]);
}

/** The flags and the data of the one message that a gRPC body holds. Fails if it holds another number. */
export function opened(body: Buffer): { flags: number; data: Buffer } {
  if (body.length < 5 || body.readUInt32BE(1) !== body.length - 5) throw new Error('Not exactly one message');
  return { flags: body.readUInt8(), data: body.subarray(5) };
}

/** The data of the last message that the body of a stream holds, which is the end in gRPC-Web and in Connect. */
export function lastEnvelope(body: Buffer): Buffer {
  let at = 0;
  while (at + 5 + body.readUInt32BE(at + 1) < body.length) at += 5 + body.readUInt32BE(at + 1);
  return body.subarray(at + 5);
}

/** Sends bytes as they are and no more after them; gives what comes back until the server hangs up. */
export async function sendBytes(url: string, bytes: Uint8Array): Promise<string> {
  const { hostname, port } = new URL(url);
  const socket = connectTcp(Number(port), hostname);
  socket.end(bytes);
  return text(socket);
}

/** Sends what it is given as it is and keeps the connection open; gives what comes back until the server hangs up. */
export function sendUnended(url: string, parts: (string | Uint8Array)[]): Promise<string> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const socket = connectTcp(Number(port), hostname);
    let received = '';
    socket.on('data', (data) => {
      received += data.toString('latin1');
    });
    // A server that hangs up while they are being sent resets the connection.
    socket.on('error', () => {});
    socket.on('close', () => resolve(received));
    for (const part of parts) socket.write(part);
  });
}

/** A connection that stays half open when the server ends it, as attackers keep theirs. */
export async function openSocket(url: string, localAddress = '127.0.0.1'): Promise<HeldSocket> {
  const { hostname, port } = new URL(url);
  const socket = connectTcp({ host: hostname, port: Number(port), localAddress, allowHalfOpen: true });
  const received: Buffer[] = [];
  const ended = new Promise<void>((resolve) => {
    socket.once('end', resolve).once('close', () => resolve());
  });
  socket.on('data', (data) => received.push(data));
  socket.on('error', () => undefined);
  await Promise.race([once(socket, 'connect'), ended]);
  return {
    socket,
    ended,
    text: () => Buffer.concat(received).toString('latin1'),
    isGone() {
      if (!socket.destroyed) socket.write('x');
      return socket.destroyed;
    },
    [Symbol.dispose]: () => socket.destroy(),
  };
}

/** Sends a text and breaks the connection. */
export function cutOff(url: string, part: string): Promise<void> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const socket = connectTcp(Number(port), hostname, () => socket.write(part, () => socket.destroy()));
    socket.on('close', () => resolve());
  });
}

/**
 * The bytes of a connection whose first stream posts a part of a body and does not end.
 *
 * Node's own client can't send this: it ends the stream before it resets it.
 */
export function http2Part(path: string, headers: Record<string, string>, ...parts: Uint8Array[]): Buffer {
  const data = parts.map((part) => frame({ type: DATA }, part));
  return Buffer.concat([http2Preface(), http2Headers(path, headers), ...data]);
}

/** So many calls, each cancelled as soon as it is made. */
export function http2Cancelled(calls: number): Buffer {
  const streams = Array.from({ length: calls }, (_, index) => 2 * index + 1);
  return Buffer.concat(
    streams.flatMap((stream) => [http2Headers('/', {}, stream), http2Reset(CANCEL, stream)]),
  );
}

function http2Headers(path: string, headers: Record<string, string>, stream = 1): Buffer {
  const fields = {
    ':method': 'POST',
    ':scheme': 'http',
    ':authority': 'localhost',
    ':path': path,
    ...headers,
  };
  return frame({ type: HEADERS, flags: END_HEADERS, stream }, ...Object.entries(fields).flat().map(literal));
}

/** What a connection begins with, without the acknowledgement of the server's settings. */
export function http2Preface(): Buffer {
  return Buffer.concat([
    Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
    frame({ type: SETTINGS, stream: 0 }),
  ]);
}

/** Acknowledges the server's settings. */
export function http2Acknowledgement(): Buffer {
  return frame({ type: SETTINGS, flags: ACK, stream: 0 });
}

export function http2Ping(): Buffer {
  return frame({ type: PING, stream: 0 }, Buffer.alloc(8));
}

/** Says that no stream will follow. */
export function http2Goaway(): Buffer {
  return frame({ type: GOAWAY, stream: 0 }, Buffer.alloc(8));
}

/** Ends the stream of `http2Part` with a code of HTTP/2. */
export function http2Reset(code: number, stream = 1): Buffer {
  const payload = Buffer.alloc(4);
  payload.writeUInt32BE(code);
  return frame({ type: RST_STREAM, stream }, payload);
}

/** Ends the stream of `http2Part` as if its body were whole. */
export function http2End(): Buffer {
  return frame({ type: DATA, flags: END_STREAM });
}

function frame({ type, flags = 0, stream = 1 }: FrameHead, ...parts: Uint8Array[]): Buffer {
  const payload = Buffer.concat(parts);
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** A name or a value of a header in HPACK, neither indexed nor compressed. A name begins the field with 0. */
function literal(value: string, index: number): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([Buffer.from(index % 2 === 0 ? [0, bytes.length] : [bytes.length]), bytes]);
}

/** What was received by the end of the stream, whether the server ended it or not. */
async function answerOf(stream: ClientHttp2Stream): Promise<Http2Answer> {
  const chunks: Buffer[] = [];
  const answer = { status: 0, headers: {}, trailers: {} };
  stream.on('response', ({ ':status': status, ...headers }) => {
    Object.assign(answer, { status, headers: plain(headers) });
  });
  stream.on('trailers', (trailers) => Object.assign(answer, { trailers: plain(trailers) }));
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  await Promise.race([once(stream, 'end'), once(stream, 'close')]);
  return { ...answer, body: Buffer.concat(chunks) };
}

/** Without the symbols that Node keeps in there. */
function plain(headers: IncomingHttpHeaders): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
}

const [DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY] = [0, 1, 3, 4, 6, 7] as const;
const [END_STREAM, ACK, END_HEADERS] = [1, 1, 4] as const;

/** The code of a stream that nobody wants any more. */
const CANCEL = 8;

type FrameHead = { type: number; flags?: number; stream?: number };

export type HeldSocket = Disposable & {
  socket: Socket;
  /** Resolves when the server has ended its side, or the connection. */
  ended: Promise<void>;
  /** What has come back so far. */
  text: () => string;
  /** Whether the server no longer has the connection: only then its system refuses what comes. Sends a byte. */
  isGone(): boolean;
};

export type Http2Connection = Disposable & {
  /** One call, each of `frames` in a DATA frame of its own; unless `ended`, the body stays open. */
  call(
    path: string,
    frames: Uint8Array[],
    headers?: Record<string, string>,
    options?: { method?: string; ended?: boolean },
  ): Promise<Http2Answer>;
};

export type Http2Answer = {
  /** 0 if there was no answer. */
  status: number;
  headers: Record<string, string>;
  trailers: Record<string, string>;
  body: Buffer;
};
