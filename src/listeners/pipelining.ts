import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';

/**
 * Handles the requests of each connection one after the other, as their answers are sent. A connection that has more
 * waiting than clients that pipeline do is destroyed.
 *
 * Node handles all requests that it reads at once, thousands in 64 KiB: their work would be done in one turn, and
 * their answers be kept for a client that takes none.
 */
export function oneAtATime(handler: RequestListener): RequestListener {
  return (request, response) => {
    const { socket } = request;
    socket[queueKey] ??= new RequestQueue(handler);
    socket[queueKey].take(request, response);
  };
}

class RequestQueue {
  readonly #handler: RequestListener;
  #isBusy = false;
  /** Absent until a request has to wait: most connections never have one. */
  #waiting: Exchange[] | undefined;

  constructor(handler: RequestListener) {
    this.#handler = handler;
  }

  take(request: IncomingMessage, response: Response): void {
    if (!this.#isBusy) {
      this.#begin(request, response);
      return;
    }
    this.#waiting ??= [];
    if (this.#waiting.length < MAX_WAITING) this.#waiting.push([request, response]);
    else request.socket.destroy();
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
      const [request, response] = this.#waiting?.shift() ?? [];
      if (request?.socket.writable && response !== undefined) this.#begin(request, response);
      else this.#waiting = undefined;
    });
  };
}

/** As many as calls on a connection of HTTP/2. */
const MAX_WAITING = 100;

const queueKey = Symbol('requests of a connection');

declare module 'node:net' {
  interface Socket {
    [queueKey]?: RequestQueue;
  }
}

type Response = ServerResponse & { req: IncomingMessage };
type Exchange = [request: IncomingMessage, response: Response];
