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
import { http2Bounds, MAX_HEADER_BYTES, type TimeOuts } from '../admission/bounds.ts';
import { Http2Request } from '../admission/chunk-budget.ts';

/**
 * A server of HTTP/2 that ends connections which never begin, are idle or gone, or flood it with frames that are no
 * calls; and streams whose answer nobody takes.
 *
 * nghttp2 bounds the rest: headers that go on and on, invalid frames, and answers to frames that pile up.
 *
 * It listens on no port of its own: what does emits `connection` on it.
 */
export function createHttp2Server(handler: Handler, timeOuts: TimeOuts): Http2Server {
  const server = createServer(
    {
      Http2ServerRequest: Http2Request,
      settings: { maxConcurrentStreams: http2Bounds.streams, maxHeaderListSize: MAX_HEADER_BYTES },
      streamResetBurst: http2Bounds.resets,
      streamResetRate: http2Bounds.resetsPerSecond,
    },
    handler,
  );
  let accepted: Socket | undefined;
  server.prependListener('connection', (socket: Socket) => {
    accepted = socket;
  });
  // Node emits it within the emission of `connection`, so the socket is that of this session.
  server.on('session', (session) => {
    if (accepted !== undefined) watchSession(session, accepted, timeOuts);
  });
  return server;
}

/** Looks at a session now and then, each at times of its own, so that few are ended at once. */
function watchSession(session: ServerHttp2Session, socket: Socket, timeOuts: TimeOuts): void {
  const streams = new Set<ServerHttp2Stream>();
  const stalled = new Map<ServerHttp2Stream, { bytes: number; since: number }>();
  let settingsOwed = 2;
  let bytesRead = 0;
  let heardAt = performance.now();
  let pingedAt: number | undefined;
  let idleSince = heardAt;

  const beginning = setTimeout(destroy, timeOuts.headersMs);
  const timer = setInterval(check, timeOuts.http2CheckMs);
  socket.once('close', () => {
    clearTimeout(beginning);
    clearInterval(timer);
  });
  const settled = () => {
    settingsOwed -= 1;
    if (settingsOwed === 0) clearTimeout(beginning);
  };
  session.once('localSettings', settled);
  session.once('remoteSettings', settled);
  limitControlFrames(session, () => end(constants.NGHTTP2_ENHANCE_YOUR_CALM));
  session.on('stream', (stream) => {
    streams.add(stream);
    // It comes once anyway; `once`, or a function of each stream's own, would keep more memory for thousands that wait.
    stream.on('close', forget);
  });

  function forget(this: ServerHttp2Stream): void {
    streams.delete(this);
    stalled.delete(this);
    if (streams.size === 0) idleSince = performance.now();
  }

  function destroy(): void {
    end(constants.NGHTTP2_NO_ERROR);
  }

  function end(code: number): void {
    session.destroy(undefined, code);
    socket.destroy();
  }

  function check(): void {
    if (session.destroyed) return;
    const now = performance.now();
    if (streams.size === 0) checkIdle(now);
    checkSilent(now);
    checkStreams(now);
  }

  /** Ends what has begun but does not go on; the client learns in time that it needs another connection. */
  function checkIdle(now: number): void {
    const idleMs = now - idleSince;
    if (idleMs >= timeOuts.http2IdleMs + timeOuts.lingerMs) destroy();
    else if (idleMs >= timeOuts.http2IdleMs) session.close();
  }

  /** A client that is gone says nothing; one that waits for a stream answers a ping. */
  function checkSilent(now: number): void {
    const isHeard = streams.size === 0 || socket.bytesRead !== bytesRead;
    if (isHeard) {
      bytesRead = socket.bytesRead;
      heardAt = now;
      pingedAt = undefined;
    } else if (pingedAt !== undefined) {
      if (now - pingedAt >= timeOuts.pongMs) destroy();
    } else if (now - heardAt >= timeOuts.pingAfterMs) {
      pingedAt = now;
      session.ping(() => undefined);
    }
  }

  function checkStreams(now: number): void {
    for (const stream of streams) {
      const bytes = stream.bufferSize;
      const before = stalled.get(stream);
      if (bytes === 0) stalled.delete(stream);
      else if (bytes !== before?.bytes) stalled.set(stream, { bytes, since: now });
      else if (now - before.since >= timeOuts.stalledMs) stream.close(constants.NGHTTP2_CANCEL);
    }
  }
}

/** Calls `end` for a client that sends more pings and settings than any program needs. */
function limitControlFrames(session: ServerHttp2Session, end: () => void): void {
  let count = 0;
  let since = performance.now();
  const countFrame = () => {
    const now = performance.now();
    if (now - since > http2Bounds.controlFramesMs) [count, since] = [0, now];
    count += 1;
    if (count > http2Bounds.controlFrames) end();
  };
  session.on('ping', countFrame);
  session.on('remoteSettings', countFrame);
}

type Handler = (request: Http2ServerRequest, response: Http2ServerResponse) => void;
