import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import type { DescMethod } from '@bufbuild/protobuf';
import { cors } from '@connectrpc/connect';
import { isOpenToPages } from '../../domain/methods.ts';

/**
 * Says which pages of other origins may call an RPC and read its answer: those of any origin where it is public,
 * and those of `allowedOrigins` everywhere. No cookie is used.
 *
 * Returns true if the request is a preflight, which is answered then; one that is refused has status 403.
 */
export function createCors(allowedOrigins: readonly string[]): Cors {
  const allowed = new Set(allowedOrigins);
  return (method, { method: httpMethod, headers }, response) => {
    const { origin } = headers;
    const isPreflight = httpMethod === 'OPTIONS';
    if (origin === undefined && !isPreflight) return false;
    const permitted = isOpenToPages(method) ? '*' : origin;
    const isPermitted = permitted === '*' || (permitted !== undefined && allowed.has(permitted));
    if (allowed.size > 0) response.setHeader('vary', 'Origin');
    if (isPermitted) {
      response.setHeader('access-control-allow-origin', permitted);
      response.setHeader('access-control-expose-headers', exposedHeaders);
    }
    if (!isPreflight) return false;
    response.statusCode = isPermitted ? 204 : 403;
    if (isPermitted) {
      response.setHeader('access-control-allow-methods', 'GET, POST');
      response.setHeader('access-control-allow-headers', allowedHeaders);
      response.setHeader('access-control-max-age', MAX_AGE_SECONDS);
    }
    response.end();
    return true;
  };
}

const allowedHeaders = [...cors.allowedHeaders, 'Authorization', 'X-Request-Id'].join(', ');
const exposedHeaders = [
  ...cors.exposedHeaders,
  'RateLimit',
  'RateLimit-Policy',
  'Retry-After',
  'WWW-Authenticate',
  'X-Request-Id',
].join(', ');

/** As long as browsers keep it at most. */
const MAX_AGE_SECONDS = 7200;

export type Cors = (
  method: DescMethod,
  request: IncomingMessage | Http2ServerRequest,
  response: ServerResponse | Http2ServerResponse,
) => boolean;
