import type { Socket } from 'node:net';

/**
 * Waits for the first bytes of a connection and says whether they are the preface of HTTP/2 (RFC 9113, section
 * 3.4). The bytes stay in the socket.
 *
 * `undecided` gets a connection that sends nothing for `timeoutMs`, or ends before it is clear.
 */
export function readPreface(socket: Socket, timeoutMs: number, decided: Decisions): void {
  let seen = Buffer.alloc(0);
  const timer = setTimeout(() => undecide('ERR_HTTP_REQUEST_TIMEOUT'), timeoutMs);

  function read(): void {
    for (let chunk = socket.read(); chunk !== null; chunk = socket.read())
      seen = Buffer.concat([seen, chunk]);
    const compared = Math.min(seen.length, PREFACE.length);
    const fits = PREFACE.subarray(0, compared).equals(seen.subarray(0, compared));
    if (fits && compared < PREFACE.length) return;
    stop();
    socket.unshift(seen);
    if (fits) decided.http2(socket);
    else decided.http1(socket);
  }

  function undecide(code: string): void {
    stop();
    decided.undecided(Object.assign(new Error('The connection does not begin'), { code }), socket);
  }

  function ended(): void {
    if (seen.length > 0) {
      undecide('HPE_INVALID_EOF_STATE');
      return;
    }
    stop();
    socket.end();
  }

  function stop(): void {
    clearTimeout(timer);
    socket.off('readable', read).off('end', ended).off('error', stop).off('close', stop);
  }

  socket.on('readable', read).on('end', ended).on('error', stop).on('close', stop);
}

/** As of RFC 9113, section 3.4. */
const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');

type Decisions = {
  http1: (socket: Socket) => void;
  http2: (socket: Socket) => void;
  /** The error has a code of Node's parser. */
  undecided: (error: NodeJS.ErrnoException, socket: Socket) => void;
};
