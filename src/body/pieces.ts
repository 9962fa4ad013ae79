import { IncomingMessage } from 'node:http';
import { constants, Http2ServerRequest, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import type { ReadableOptions } from 'node:stream';

/**
 * A request of HTTP/1.1 whose body comes in pieces worth what it costs to take them: Node calls for each chunk, and
 * may read 2 MiB of a connection in one turn of the event loop. A connection that brings too many small pieces is
 * destroyed; after some that are large enough, others have their turn.
 */
export class Http1Request extends IncomingMessage {
  #pieces = 0;
  #pace: Pace | undefined;

  override push(piece: Buffer | null): boolean {
    this.#pieces += 1;
    if (piece === null || this.#pieces <= FREE_PIECES) return super.push(piece);
    const { socket } = this;
    // Node still parses the rest of what it had read.
    if (socket.destroyed) return false;
    if (!isWithinBudget(socket, piece)) {
      socket.destroy();
      return false;
    }
    this.#pace ??= new Pace(() => super._read(0));
    const wantsMore = super.push(piece);
    return this.#pace.take(piece) && wantsMore;
  }

  override _read(size: number): void {
    if (this.#pace === undefined || !this.#pace.defers()) super._read(size);
  }
}

/** The same of HTTP/2, where a piece is a frame. */
export class Http2Request extends Http2ServerRequest {
  #pieces = 0;
  #pace: Pace | undefined;

  constructor(
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    _options: ReadableOptions | undefined,
    rawHeaders: readonly string[],
  ) {
    super(stream, headers, UNREAD, rawHeaders);
    // What nobody reads yet would stay with the stream, uncounted.
    if (!stream.endAfterHeaders) this.read(0);
  }

  override push(piece: Buffer | null): boolean {
    this.#pieces += 1;
    if (piece === null || this.#pieces <= FREE_PIECES) return super.push(piece);
    const { session } = this.stream;
    if (session === undefined || session.destroyed) return false;
    if (!isWithinBudget(session, piece)) {
      session.destroy(undefined, constants.NGHTTP2_ENHANCE_YOUR_CALM);
      return false;
    }
    this.#pace ??= new Pace(() => {
      if (!this.stream.destroyed) super._read(0);
    });
    const wantsMore = super.push(piece);
    return this.#pace.take(piece) && wantsMore;
  }

  override _read(size: number): void {
    if (this.#pace === undefined || !this.#pace.defers()) super._read(size);
  }
}

/** What a request keeps before it is read; its stream keeps another 64 KiB. */
const UNREAD: ReadableOptions = { highWaterMark: 16 * 1024 };

/** Stops reading until the next turn of the event loop after every so many pieces. */
class Pace {
  readonly #readMore: () => void;
  #taken = 0;
  #isPaused = false;
  #isDeferred = false;

  constructor(readMore: () => void) {
    this.#readMore = readMore;
  }

  /** Returns whether to go on. Small pieces are bounded by the budget: while Node keeps them, it counts none. */
  take(piece: Buffer): boolean {
    if (piece.length >= PIECE_BYTES) this.#taken += 1;
    if (this.#taken >= TURN_PIECES && !this.#isPaused) {
      this.#isPaused = true;
      setImmediate(() => this.#goOn());
    }
    return !this.#isPaused;
  }

  /** Whether reading has to wait. It then goes on by itself. */
  defers(): boolean {
    this.#isDeferred = this.#isPaused;
    return this.#isPaused;
  }

  #goOn(): void {
    this.#taken = 0;
    this.#isPaused = false;
    if (this.#isDeferred) this.#readMore();
    this.#isDeferred = false;
  }
}

function isWithinBudget(connection: Connection, piece: Buffer): boolean {
  connection[budgetKey] ??= new PieceBudget();
  return connection[budgetKey].take(piece.length);
}

/** How many pieces a connection may still bring: it earns them by their bytes, and with time. */
class PieceBudget {
  #left = MOST_PIECES;
  #earnedAt = performance.now();

  take(bytes: number): boolean {
    this.#left = Math.min(MOST_PIECES, this.#left + bytes / PIECE_BYTES - 1);
    if (this.#left >= 0) return true;
    const now = performance.now();
    this.#left += Math.min(MOST_PIECES, (now - this.#earnedAt) * PIECES_PER_MS);
    this.#earnedAt = now;
    return this.#left >= 0;
  }
}

/** Of each request, since a proxy sends the small bodies of many clients on one connection. */
const FREE_PIECES = 32;

/** Some milliseconds of work; enough for answers that a program writes word by word. */
const MOST_PIECES = 1_024;

/** More than people type, or programs flush, on a connection. */
const PIECES_PER_MS = 1;

/** Less than a line of text or a small message, which cost no more than a packet of their own would. */
const PIECE_BYTES = 64;

/** A fourth of what a connection may have in 64 KiB, which is what Node reads before it looks whether to go on. */
const TURN_PIECES = 256;

const budgetKey = Symbol('budget of pieces');

declare module 'node:net' {
  interface Socket {
    [budgetKey]?: PieceBudget;
  }
}

declare module 'node:http2' {
  interface Http2Session {
    [budgetKey]?: PieceBudget;
  }
}

type Connection = { [budgetKey]?: PieceBudget };
