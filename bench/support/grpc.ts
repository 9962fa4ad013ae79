import { once } from 'node:events';
import { connect } from 'node:net';
import { type Load, startMeter } from './load.ts';

/**
 * Keeps 64 unary gRPC calls under way, 16 on each of four connections, until the time is over. A call
 * that does not end with a message and `grpc-status: 0` is an error.
 */
export async function hammerGrpc({ port, method, message, seconds }: GrpcOptions): Promise<Load> {
  const connections = await Promise.all(
    Array.from({ length: CONNECTIONS }, () => openGrpcConnection(port, method)),
  );
  const frame = grpcFrame(message);
  const meter = startMeter();
  const end = performance.now() + seconds * 1000;

  const run = async (connection: GrpcConnection) => {
    while (performance.now() < end) await meter.time(() => connection.call(frame), OK);
  };
  await Promise.all(
    connections.flatMap((connection) => Array.from({ length: CALLS_PER_CONNECTION }, () => run(connection))),
  );
  const load = meter.stop();
  for (const connection of connections) connection.close();
  return load;
}

const CONNECTIONS = 4;
const CALLS_PER_CONNECTION = 16;

/**
 * One HTTP/2 connection to 127.0.0.1 that makes unary calls of one method, as many at once as are asked
 * for, with an API key if one is given.
 *
 * The load generator shares the machine with what it measures, so it has to be cheap: this writes the two
 * frames of a call and looks for the status at the end of the answer, where `node:http2` builds streams
 * and headers.
 */
export async function openGrpcConnection(
  port: number,
  method: string,
  key?: string,
): Promise<GrpcConnection> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  await once(socket, 'connect');
  const head = requestHead(method, port, key);
  const calls = new Map<number, Waiting>();
  let stream = 1;
  let unread: Buffer = Buffer.alloc(0);

  const answer = (type: number, flags: number, id: number, payload: Buffer) => {
    if (type === FRAME.settings && (flags & FLAG.ack) === 0)
      socket.write(frameOf(FRAME.settings, FLAG.ack, 0));
    if (type === FRAME.ping && (flags & FLAG.ack) === 0)
      socket.write(frameOf(FRAME.ping, FLAG.ack, 0, payload));
    if (type === FRAME.goAway) throw new Error('The server closed the connection.');
    const call = calls.get(id);
    if (call === undefined) return;
    if (type === FRAME.data && payload.length > GRPC_HEAD) call.messages += 1;
    if ((flags & FLAG.endStream) === 0 && type !== FRAME.reset) return;
    calls.delete(id);
    const whole = type === FRAME.headers && call.messages === 1 && payload.subarray(-2).equals(STATUS_0);
    call.resolve({ status: whole ? OK : 'failed' });
  };
  socket.on('data', (bytes) => {
    unread = unread.length === 0 ? bytes : Buffer.concat([unread, bytes]);
    let at = 0;
    while (unread.length - at >= FRAME_HEAD) {
      const end = at + FRAME_HEAD + unread.readUIntBE(at, 3);
      if (end > unread.length) break;
      answer(
        unread[at + 3] ?? 0,
        unread[at + 4] ?? 0,
        unread.readUInt32BE(at + 5),
        unread.subarray(at + FRAME_HEAD, end),
      );
      at = end;
    }
    unread = unread.subarray(at);
  });
  const lost = (error?: Error) => {
    for (const { reject } of calls.values()) reject(error ?? new Error('The connection was closed.'));
  };
  socket.on('error', lost);
  socket.on('close', () => lost());
  socket.write(
    Buffer.concat([
      PREFACE,
      frameOf(FRAME.settings, 0, 0, NO_HEADER_TABLE),
      frameOf(FRAME.window, 0, 0, WIDE),
    ]),
  );

  return {
    call(message) {
      const { promise, resolve, reject } = Promise.withResolvers<{ status: string }>();
      calls.set(stream, { messages: 0, resolve, reject });
      socket.write(
        Buffer.concat([
          frameOf(FRAME.headers, FLAG.endHeaders, stream, head),
          frameOf(FRAME.data, FLAG.endStream, stream, message),
        ]),
      );
      stream += 2;
      return promise;
    },
    close() {
      socket.removeAllListeners('close');
      socket.destroy();
    },
  };
}

/** A frame of HTTP/2 (RFC 9113, section 4.1): length, type, flags, stream, payload. */
function frameOf(type: number, flags: number, stream: number, payload: Buffer = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(FRAME_HEAD);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** A message with gRPC's own head: a byte of flags and four of length. */
export function grpcFrame(message: Buffer): Buffer {
  const frame = Buffer.concat([Buffer.alloc(GRPC_HEAD), message]);
  frame.writeUInt32BE(message.length, 1);
  return frame;
}

/** The request's headers in HPACK (RFC 7541), without its dynamic table. */
function requestHead(method: string, port: number, key: string | undefined): Buffer {
  return Buffer.concat([
    Buffer.from([INDEXED | STATIC.methodPost, INDEXED | STATIC.schemeHttp]),
    Buffer.from([STATIC.path]),
    hpackText(method),
    Buffer.from([STATIC.authority]),
    hpackText(`127.0.0.1:${port}`),
    // An index of 15 and more takes a second byte for what is above 15.
    Buffer.from([15, STATIC.contentType - 15]),
    hpackText('application/grpc+proto'),
    Buffer.from([0]),
    hpackText('te'),
    hpackText('trailers'),
    ...(key === undefined ? [] : [Buffer.from([15, STATIC.authorization - 15]), hpackText(`Bearer ${key}`)]),
  ]);
}

/** A text of fewer than 127 bytes, not Huffman coded. */
function hpackText(text: string): Buffer {
  return Buffer.concat([Buffer.from([text.length]), Buffer.from(text)]);
}

const INDEXED = 0x80;

/** Places in HPACK's static table. */
const STATIC = { authority: 1, methodPost: 3, path: 4, schemeHttp: 6, authorization: 23, contentType: 31 };

const FRAME = { data: 0, headers: 1, reset: 3, settings: 4, ping: 6, goAway: 7, window: 8 };
const FLAG = { endStream: 1, ack: 1, endHeaders: 4 };

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');

/** Setting 1 to 0: the server then writes headers out, so that a status can be read without a table. */
const NO_HEADER_TABLE = Buffer.from([0, 1, 0, 0, 0, 0]);

/** As much as a connection may be given to send: 2^31 - 1 bytes, less the 65,535 it begins with. */
const WIDE = Buffer.alloc(4);
WIDE.writeUInt32BE(2 ** 31 - 1 - 65_535);

/** How trailers end that have `grpc-status: 0` last: a text of one byte, `0`. */
const STATUS_0 = Buffer.from([1, 0x30]);

const FRAME_HEAD = 9;
const GRPC_HEAD = 5;
const OK = '0';

type GrpcOptions = { port: number; method: string; message: Buffer; seconds: number };
export type GrpcConnection = { call(frame: Buffer): Promise<{ status: string }>; close(): void };
type Waiting = {
  messages: number;
  resolve: (reply: { status: string }) => void;
  reject: (error: Error) => void;
};
