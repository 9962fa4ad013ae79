import { randomUUID } from 'node:crypto';
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http';
import type { Socket } from 'node:net';
import type { ConnectError } from '@connectrpc/connect';
import { Reason } from '../../gen/headlessforms/v1/errors_pb.js';
import type { Admission } from '../admission/admission.ts';
import { MAX_HEADER_BYTES, MAX_PIPELINED, type TimeOuts } from '../admission/bounds.ts';
import { Http1Request } from '../admission/chunk-budget.ts';
import { failed } from '../domain/errors/failure.ts';
import { restErrorOf } from '../http/errors.ts';

/**
 * A server of HTTP/1.1 that ends connections which are slow, idle or broken. It listens on no port of its own:
 * what does emits `connection` on it.
 */
export function createHttp1Server(
  handler: RequestListener,
  admission: Pick<Admission, 'hold'>,
  timeOuts: TimeOuts,
): Server {
  const answer = oneAtATime(refusingTwoHosts(handler), admission);
  const server = createServer(
    {
      IncomingMessage: Http1Request,
      shouldUpgradeCallback: ({ socket }) => !socket.writable,
      headersTimeout: timeOuts.headersMs,
      keepAliveTimeout: timeOuts.http1IdleMs,
      connectionsCheckingInterval: timeOuts.checkEveryMs,
      // How long a body may take depends on its size: see src/admission/body-account.ts.
      requestTimeout: 0,
      maxHeaderSize: MAX_HEADER_BYTES,
    },
    answer,
  );
  // Of a call under way: Node destroys connections that send and take nothing for so long.
  server.timeout = timeOuts.stalledMs;
  server.on('clientError', refuseBrokenRequest);
  // The connection ends, see `Http1Request.upgrade`: what its client still sends is read and dropped.
  server.on('upgrade', (_, socket) => socket.resume());
  // An unknown Expect header is ignored, since the interface has no status 417.
  server.on('checkExpectation', answer);
  // Node looks for slow headers once a server listens, and this one gets its connections from others.
  server.emit('listening');
  return server;
}

/** Refuses requests that name more than one host: a proxy and this service could each take another. */
function refusingTwoHosts(handler: RequestListener): RequestListener {
  return (request, response) => {
    const { rawHeaders } = request;
    let hosts = 0;
    for (let at = 0; at < rawHeaders.length; at += 2) {
      const name = rawHeaders[at];
      if (name?.length === 4 && name.toLowerCase() === 'host') hosts += 1;
    }
    if (hosts > 1) request.socket.end(answerWith(twoHosts));
    else handler(request, response);
  };
}

/**
 * Answers what Node's parser refuses with the error body of the interface, and closes the connection. One that was
 * silent is closed without an answer: a browser opens some in advance, and would take it for that to the request which
 * it sends at the same moment.
 */
function refuseBrokenRequest(error: NodeJS.ErrnoException, socket: Socket): void {
  if (!socket.writable || socket.bytesRead === 0 || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  socket.end(answerWith(brokenRequests[error.code ?? ''] ?? notHttp));
}

const twoHosts = failed(Reason.BAD_REQUEST, 'The request names more than one host');
const notHttp = failed(Reason.BAD_REQUEST, 'The request is not HTTP');

const brokenRequests: Record<string, ConnectError> = {
  HPE_HEADER_OVERFLOW: failed(Reason.TOO_LARGE, 'The URL or the headers are too large'),
  ERR_HTTP_REQUEST_TIMEOUT: failed(Reason.BAD_REQUEST, 'The request took too long to arrive'),
};

/** The bytes of a reply. It has an id of its own, as every reply has one; these are not logged. */
function answerWith(error: ConnectError): string {
  const { status, body: content } = restErrorOf(error);
  const body = JSON.stringify(content);
  return (
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: application/json; charset=utf-8\r\n` +
    `X-Request-Id: ${randomUUID()}\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`
  );
}

/**
 * Handles the requests of each connection one after the other, as their answers are sent. A connection that has more
 * waiting than clients that pipeline do, or than its client may, is destroyed: an answer that says so could only come
 * after those before it.
 *
 * Node handles all requests that it reads at once, thousands in 64 KiB: their work would be done in one turn, and
 * their answers be kept for a client that takes none.
 */
function oneAtATime(handler: RequestListener, admission: Pick<Admission, 'hold'>): RequestListener {
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
    if (!this.#isBusy) {
      this.#begin(request, response);
      return;
    }
    this.#waiting ??= [];
    const release = this.#waiting.length < MAX_PIPELINED ? this.#admission.hold(request) : undefined;
    if (release === undefined) request.socket.destroy();
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
    // A client that pipelines would else hold up all other connections.
    setImmediate(() => {
      const next = this.#waiting?.shift();
      next?.release();
      if (next?.request.socket.writable) this.#begin(next.request, next.response);
      else for (const { release } of this.#waiting?.splice(0) ?? []) release();
    });
  };
}

const queueKey = Symbol('requests of a connection');

declare module 'node:net' {
  interface Socket {
    [queueKey]?: RequestQueue;
  }
}

type Response = ServerResponse & { req: IncomingMessage };
type Exchange = { request: IncomingMessage; response: Response; release: () => void };
