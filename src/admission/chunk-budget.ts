import { IncomingMessage } from 'node:http';
import { constants, Http2ServerRequest, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import type { ReadableOptions } from 'node:stream';
import { bodyBounds, chunkBounds } from './bounds.ts';

/**
 * A request of HTTP/1.1 whose body comes in chunks worth what it costs to take them: Node calls for each, and may read
 * 2 MiB of a connection in one turn of the event loop. A connection that brings too many small chunks is destroyed;
 * after some that are large enough, others go on first.
 */
export class Http1Request extends IncomingMessage {
  /** Declared only: Node's constructor sets it, and a field would be reset after that. */
  declare private isLast: boolean;
  #chunks = 0;
  #pace: Pace | undefined;

  /**
   * Whether Node parses no further, as after a request that asks for another protocol: a thousand more, read with one
   * that is the last of its connection, would be parsed for nobody. It is settled before a body comes, whose reader still
   * hears if it is cut off.
   */
  set upgrade(isAsked: boolean) {
    this.isLast = isAsked || !this.socket.writable;
  }

  get upgrade(): boolean {
    return this.isLast;
  }

  override push(chunk: Buffer | null): boolean {
    this.#chunks += 1;
    if (chunk === null || this.#chunks <= chunkBounds.free) return super.push(chunk);
    // Node still parses the rest of what it had read of a connection that is destroyed.
    if (!isWithinBudget(this.socket, chunk, () => this.socket.destroy())) return false;
    this.#pace ??= new Pace(() => super._read(0));
    const wantsMore = super.push(chunk);
    return this.#pace.take(chunk) && wantsMore;
  }

  override _read(size: number): void {
    if (this.#pace === undefined || !this.#pace.defers()) super._read(size);
  }
}

/** The same of HTTP/2, where a chunk is a frame. */
export class Http2Request extends Http2ServerRequest {
  #chunks = 0;
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

  override push(chunk: Buffer | null): boolean {
    this.#chunks += 1;
    if (chunk === null || this.#chunks <= chunkBounds.free) return super.push(chunk);
    const { session } = this.stream;
    const end = () => session?.destroy(undefined, constants.NGHTTP2_ENHANCE_YOUR_CALM);
    if (!isWithinBudget(session, chunk, end)) return false;
    this.#pace ??= new Pace(() => {
      if (!this.stream.destroyed) super._read(0);
    });
    const wantsMore = super.push(chunk);
    return this.#pace.take(chunk) && wantsMore;
  }

  override _read(size: number): void {
    if (this.#pace === undefined || !this.#pace.defers()) super._read(size);
  }
}

/** What a request keeps before it is read. */
const UNREAD: ReadableOptions = { highWaterMark: bodyBounds.unreadBytes };

/** Stops reading until the next turn of the event loop after every so many chunks. */
class Pace {
  readonly #readMore: () => void;
  #taken = 0;
  #isPaused = false;
  #isDeferred = false;

  constructor(readMore: () => void) {
    this.#readMore = readMore;
  }

  /** Returns whether to go on. Small chunks are bounded by the budget: while Node keeps them, it counts none. */
  take(chunk: Buffer): boolean {
    if (chunk.length >= chunkBounds.bytes) this.#taken += 1;
    if (this.#taken >= chunkBounds.inSlice && !this.#isPaused) {
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

/** Whether a connection may bring one more chunk. Calls `end` if it may not bring any more. */
function isWithinBudget(connection: Connection | undefined, chunk: Buffer, end: () => void): boolean {
  if (connection === undefined || connection.destroyed) return false;
  connection[budgetKey] ??= new ChunkBudget();
  if (connection[budgetKey].take(chunk.length)) return true;
  end();
  return false;
}

/** How many chunks a connection may still bring: it earns them by their bytes, and with time. */
class ChunkBudget {
  #left = chunkBounds.most;
  #earnedAt = performance.now();

  take(bytes: number): boolean {
    this.#left = Math.min(chunkBounds.most, this.#left + bytes / chunkBounds.bytes - 1);
    if (this.#left >= 0) return true;
    const now = performance.now();
    this.#left += Math.min(chunkBounds.most, (now - this.#earnedAt) * chunkBounds.perMs);
    this.#earnedAt = now;
    return this.#left >= 0;
  }
}

const budgetKey = Symbol('budget of chunks');

declare module 'node:net' {
  interface Socket {
    [budgetKey]?: ChunkBudget;
  }
}

declare module 'node:http2' {
  interface Http2Session {
    [budgetKey]?: ChunkBudget;
  }
}

type Connection = { destroyed: boolean; [budgetKey]?: ChunkBudget };
