import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import { pino } from 'pino';
import { Admission, type AdmissionOptions } from '../../src/admission/admission.ts';
import { type ListenOptions, listen } from '../../src/listeners/listeners.ts';

/** Serves HTTP/1.1 and HTTP/2 on free ports of loopback. What `given` leaves out answers 404 or has no bound. */
export async function startListeners(given: Partial<ListenOptions & AdmissionOptions>) {
  const log = pino({ level: 'silent' });
  const admission = new Admission({
    maxConnections: Number.POSITIVE_INFINITY,
    maxConnectionsPerClient: Number.POSITIVE_INFINITY,
    clientOf: (address) => address,
    clientOfRequest: ({ socket }) => socket.remoteAddress,
    rateLimit: true,
    isKnownClient: () => true,
    now: Date.now,
    log,
    ...given,
  });
  const listeners = await listen({
    host: '127.0.0.1',
    port: 0,
    grpcPort: 0,
    http: notFound,
    grpc: notFound,
    refuse(_request, response) {
      response.statusCode = 429;
      response.end();
    },
    admission,
    log,
    ...given,
  });
  return {
    admission,
    url: `http://127.0.0.1:${listeners.port}`,
    grpcUrl: `http://127.0.0.1:${listeners.grpcPort}`,
    close: listeners.close,
    [Symbol.asyncDispose]: () => listeners.close(0),
  };
}

function notFound(
  _request: IncomingMessage | Http2ServerRequest,
  response: ServerResponse | Http2ServerResponse,
) {
  response.statusCode = 404;
  response.end();
}
