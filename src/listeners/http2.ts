import {
  constants,
  createServer,
  type Http2Server,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import type { Socket } from 'node:net';
import { Http2Request } from '../body/pieces.ts';
import { MAX_HEADER_BYTES, type TimeOuts } from './time-outs.ts';

/**
 * A server of HTTP/2 that ends connections which never begin, are idle or gone, or flood it with frames that are no
 * calls; and streams whose answer nobody takes.
 *
 * nghttp2 bounds the rest: headers that go on and on, invalid frames, and answers to frames that pile up.
 *
 * It listens on no port of its own: whoever does emits `connection` on it.
 */
export function createHttp2Server(handler: Handler, timeOuts: TimeOuts): Http2Server {
  const server = createServer(
    {
      Http2ServerRequest: Http2Request,
      settings: { maxConcurrentStreams: MAX_STREAMS, maxHeaderListSize: MAX_HEADER_BYTES },
      // Calls that are cancelled at once: twice as many as there are streams, then as many a second as by default.
      streamResetBurst: 2 * MAX_STREAMS,
      streamResetRate: 33,
    },
    handler,
  );
  const watches = new Set<SessionWatch>();
  let accepted: Socket | undefined;
  server.prependListener('connection', (socket: Socket) => {
    accepted = socket;
  });
  // Emitted while its connection is.
  server.on('session', (session) => {
    if (accepted === undefined) return;
    const watch = watchSession(session, accepted, timeOuts);
    watches.add(watch);
    accepted.once('close', () => watches.delete(watch));
  });
  const timer = setInterval(() => {
    for (const watch of watches) watch.check();
  }, timeOuts.checkEveryMs);
  server.once('close', () => clearInterval(timer));
  return server;
}

/** Counts time in checks, which come every `checkEveryMs`. */
function watchSession(session: ServerHttp2Session, socket: Socket, timeOuts: TimeOuts): SessionWatch {
  const checksIn = (ms: number) => Math.ceil(ms / timeOuts.checkEveryMs);
  const streamCheck = checksIn(timeOuts.stalledMs / STREAM_CHECKS);
  const streams = new Set<ServerHttp2Stream>();
  const stalled = new Map<ServerHttp2Stream, { bytes: number; checks: number }>();
  const [age, idle, silent] = [{ checks: 0 }, { checks: 0 }, { checks: 0 }];
  let settingsOwed = 2;
  let bytesRead = 0;
  let controlFrames = 0;

  session.once('localSettings', () => {
    settingsOwed -= 1;
  });
  session.once('remoteSettings', () => {
    settingsOwed -= 1;
  });
  const countControlFrame = () => {
    controlFrames += 1;
    if (controlFrames > MAX_CONTROL_FRAMES) destroy(constants.NGHTTP2_ENHANCE_YOUR_CALM);
  };
  session.on('ping', countControlFrame);
  session.on('remoteSettings', countControlFrame);
  session.on('stream', (stream) => {
    streams.add(stream);
    // Comes once. `once`, or a function of its own, would keep more for each of thousands that wait.
    stream.on('close', forget);
  });

  function forget(this: ServerHttp2Stream): void {
    streams.delete(this);
    stalled.delete(this);
  }

  function destroy(code: number = constants.NGHTTP2_NO_ERROR): void {
    session.destroy(undefined, code);
    socket.destroy();
  }

  /** Ends what has begun but does not go on; the client learns in time that it needs another connection. */
  function checkIdle(): void {
    idle.checks = streams.size === 0 ? idle.checks + 1 : 0;
    if (idle.checks === checksIn(timeOuts.http2IdleMs)) session.close();
    else if (idle.checks > checksIn(timeOuts.http2IdleMs + timeOuts.lingerMs)) destroy();
  }

  /** A client that is gone says nothing; one that waits for a stream answers a ping. */
  function checkSilent(): void {
    const read = streams.size > 0 ? socket.bytesRead : 0;
    silent.checks = streams.size > 0 && read === bytesRead ? silent.checks + 1 : 0;
    bytesRead = read;
    if (silent.checks === checksIn(timeOuts.pingAfterMs)) session.ping(() => undefined);
    else if (silent.checks > checksIn(timeOuts.pingAfterMs + timeOuts.pongMs)) destroy();
  }

  function checkStreams(): void {
    for (const stream of streams) {
      const bytes = stream.bufferSize;
      const before = stalled.get(stream);
      const checks = bytes > 0 && bytes === before?.bytes ? before.checks + streamCheck : 0;
      if (bytes > 0) stalled.set(stream, { bytes, checks });
      else if (before !== undefined) stalled.delete(stream);
      if (checks > checksIn(timeOuts.stalledMs)) stream.close(constants.NGHTTP2_CANCEL);
    }
  }

  return {
    check() {
      age.checks += 1;
      if (age.checks % checksIn(CONTROL_FRAMES_MS) === 0) controlFrames = 0;
      if (session.destroyed) return;
      if (settingsOwed > 0 && age.checks > checksIn(timeOuts.headersMs)) return destroy();
      checkIdle();
      checkSilent();
      if (age.checks % streamCheck === 0) checkStreams();
    },
  };
}

/** How often a stream is looked at before it is ended as stalled. Seldom, since thousands may wait for hours. */
const STREAM_CHECKS = 8;

/** Of one connection: what clients such as browsers and those of gRPC take for granted. */
const MAX_STREAMS = 100;

/**
 * Pings and settings in ten seconds. Clients of gRPC measure the line with a ping for each round trip at the
 * beginning of a long answer, and send one in seconds afterwards.
 */
const MAX_CONTROL_FRAMES = 10_000;
const CONTROL_FRAMES_MS = 10_000;

type Handler = (request: Http2ServerRequest, response: Http2ServerResponse) => void;
type SessionWatch = { check(): void };
