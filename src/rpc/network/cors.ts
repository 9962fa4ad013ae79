import type { ServerResponse } from 'node:http';
import type { DescMethod } from '@bufbuild/protobuf';
import { cors as connect } from '@connectrpc/connect';
import cors, { type CorsRequest } from 'cors';
import type { Request, Response } from '../../admission/client.ts';
import { isOpenToPages } from '../../domain/methods.ts';

/**
 * Says which pages of other origins may call an RPC and read its answer: those of any origin where it is public,
 * and those of `allowedOrigins` everywhere. No cookie is used.
 *
 * Returns true if the request is a preflight, which is answered then; one that is refused has status 403.
 */
export function createCors(allowedOrigins: readonly string[]): Cors {
  const toAll = cors({ ...common, origin: '*' });
  const toAllowed = cors({ ...common, origin: [...allowedOrigins] });
  return (method, request, response) => {
    const isPreflight = request.method === 'OPTIONS';
    // Most calls come from no page, and say nothing of origins.
    if (request.headers.origin === undefined && !isPreflight) return false;
    const answer = isOpenToPages(method) ? toAll : toAllowed;
    answer(request as CorsRequest, response as ServerResponse, () => undefined);
    if (!isPreflight) return false;
    response.statusCode = response.hasHeader('access-control-allow-origin') ? 204 : 403;
    response.end();
    return true;
  };
}

const common = {
  methods: ['GET', 'POST'],
  allowedHeaders: [...connect.allowedHeaders, 'Authorization', 'X-Request-Id'],
  exposedHeaders: [
    ...connect.exposedHeaders,
    'RateLimit',
    'RateLimit-Policy',
    'Retry-After',
    'WWW-Authenticate',
    'X-Request-Id',
  ],
  // As long as browsers keep it at most.
  maxAge: 7200,
  preflightContinue: true,
};

type Cors = (method: DescMethod, request: Request, response: Response) => boolean;
