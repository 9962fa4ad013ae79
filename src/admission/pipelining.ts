import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Admission } from './admission.ts';
import { MAX_PIPELINED } from './bounds.ts';

/**
 * Handles the requests of each connection one after the other, as their answers are sent. A connection that has more
 * waiting than clients that pipeline do, or than its client may, is destroyed: an answer that says so could only come
 * after those before it.
 *
 * Node handles all requests that it reads at once, thousands in 64 KiB: their work would be done in one turn, and
 * their answers be kept for a client that takes none.
 */
export function oneAtATime(handler: RequestListener, admission: Pick<Admission, 'hold'>): RequestListener {
  return (request, response) => {
    const { socket } = request;
    socket[queueKey] ??= new RequestQueue(handler, admission);
    socket[queueKey].take(request, response);
  };
}

class RequestQueue {
  readonly #handler: RequestListener;
  readonly #admission: Pick<Admission, 'hold'>;
  #isBusy = false;
  /** Absent until a request has to wait: most connections never have one. */
  #waiting: Exchange[] | undefined;

  constructor(handler: RequestListener, admission: Pick<Admission, 'hold'>) {
    this.#handler = handler;
    this.#admission = admission;
  }

  take(request: IncomingMessage, response: Response): void {
    const { socket } = request;
    if (!this.#isBusy) {
      this.#begin(request, response);
      return;
    }
    // Node still parses the rest of what it had read, though nothing more can be answered.
    if (!socket.writable) return;
    this.#waiting ??= [];
    const release = this.#waiting.length < MAX_PIPELINED ? this.#admission.hold(request) : undefined;
    if (release === undefined) socket.destroy();
    else this.#waiting.push({ request, response, release });
  }

  #begin(request: IncomingMessage, response: Response): void {
    this.#isBusy = true;
    response.on('close', this.#next);
    this.#handler(request, response);
  }

  readonly #next = (): void => {
    if (this.#waiting === undefined || this.#waiting.length === 0) {
      this.#isBusy = false;
      return;
    }
    // Other connections have their turn first.
    setImmediate(() => {
      const next = this.#waiting?.shift();
      next?.release();
      if (next?.request.socket.writable) this.#begin(next.request, next.response);
      else this.#drop();
    });
  };

  #drop(): void {
    for (const { release } of this.#waiting ?? []) release();
    this.#waiting = undefined;
  }
}

const queueKey = Symbol('requests of a connection');

declare module 'node:net' {
  interface Socket {
    [queueKey]?: RequestQueue;
  }
}

type Response = ServerResponse & { req: IncomingMessage };
type Exchange = { request: IncomingMessage; response: Response; release: () => void };
