import { randomUUID } from 'node:crypto';
import { createServer, type RequestListener, type Server, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { ConnectError } from '@connectrpc/connect';
import { Reason } from '../../gen/headlessforms/v1/errors_pb.js';
import type { Admission } from '../admission/admission.ts';
import { MAX_HEADER_BYTES, type TimeOuts } from '../admission/bounds.ts';
import { Http1Request } from '../admission/chunk-budget.ts';
import { oneAtATime } from '../admission/pipelining.ts';
import { failed } from '../domain/errors/failure.ts';
import { restErrorOf } from '../http/errors.ts';

/**
 * A server of HTTP/1.1 that ends connections which are slow, idle or broken. It listens on no port of its own:
 * whoever does emits `connection` on it.
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

/** Answers what Node's parser refuses with the error body of the interface, and closes the connection. */
function refuseBrokenRequest(error: NodeJS.ErrnoException, socket: Socket): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
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
