import { type ClientHttp2Session, connect } from 'node:http2';
import { type Load, startMeter } from './load.ts';

/**
 * Keeps 64 unary gRPC calls under way, 16 on each of four connections, until the time is over. A call
 * that does not end with `grpc-status: 0` is an error.
 *
 * `node:http2` costs the load generator several times what `hammer` does, and that counts against the
 * service, since both share the machine.
 */
export async function hammerGrpc({ port, method, message, seconds }: GrpcOptions): Promise<Load> {
  const sessions = Array.from({ length: CONNECTIONS }, () => connect(`http://127.0.0.1:${port}`));
  const frame = Buffer.concat([Buffer.alloc(FRAME_HEAD), message]);
  frame.writeUInt32BE(message.length, 1);
  const meter = startMeter();
  const end = performance.now() + seconds * 1000;

  const run = async (session: ClientHttp2Session) => {
    while (performance.now() < end) await meter.time(() => call(session, method, frame), '0');
  };
  await Promise.all(
    sessions.flatMap((session) => Array.from({ length: CALLS_PER_CONNECTION }, () => run(session))),
  );
  const load = meter.stop();
  for (const session of sessions) session.close();
  return load;
}

const CONNECTIONS = 4;
const CALLS_PER_CONNECTION = 16;

/** A byte of flags and four of length. */
const FRAME_HEAD = 5;

function call(session: ClientHttp2Session, method: string, frame: Buffer): Promise<{ status: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: string }>();
  const stream = session.request({
    ':method': 'POST',
    ':path': method,
    'content-type': 'application/grpc+proto',
    te: 'trailers',
  });
  const told = (headers: Record<string, unknown>) => {
    const status = headers['grpc-status'];
    if (typeof status === 'string') resolve({ status });
  };
  stream.on('response', told);
  stream.on('trailers', told);
  stream.on('error', reject);
  stream.on('close', () => reject(new Error('The call ended without a status.')));
  stream.resume();
  stream.end(frame);
  return promise;
}

type GrpcOptions = { port: number; method: string; message: Buffer; seconds: number };
