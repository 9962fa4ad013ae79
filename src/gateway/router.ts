import { randomUUID } from 'node:crypto';
import type { DescMethod } from '@bufbuild/protobuf';
import type { CallOptions, Transport } from '@connectrpc/connect';
import cors from 'cors';
import express, { type NextFunction, type Request, type Response, type Router } from 'express';
import { callOptions, callsFor } from '../http/call.ts';
import { CutOff, drain } from './body.ts';
import { deliveryRoutes } from './deliveries.ts';
import { Refusal, refusalOf } from './errors.ts';
import { isFormPost } from './form-body.ts';
import { ACTIVATION_PATH, activationRoutes } from './forms/activation.ts';
import { formRoutes } from './forms/forms.ts';
import { versionRoutes } from './forms/versions.ts';
import { healthRoutes } from './health.ts';
import { keyRoutes } from './keys.ts';
import { type AccessOf, describeApi } from './openapi.ts';
import type { Pages } from './pages.ts';
import { prefersJson, sendJson, sendPage } from './reply.ts';
import { type Exchange, idOf, type Operation, type Route } from './route.ts';
import { sessionRoutes } from './sessions.ts';
import { exportRoutes } from './submissions/export.ts';
import { submissionRoutes } from './submissions/submissions.ts';
import { submitRoutes } from './submissions/submit.ts';
import { uploadRoutes } from './uploads.ts';
import { webhookRoutes } from './webhooks.ts';

/** Every documented route, the busiest first. Of paths that could both match, the literal one comes first. */
export const routes: readonly Route[] = [
  ...submitRoutes,
  ...submissionRoutes,
  ...exportRoutes,
  ...formRoutes,
  ...versionRoutes,
  ...activationRoutes,
  ...sessionRoutes,
  ...webhookRoutes,
  ...deliveryRoutes,
  ...uploadRoutes,
  ...keyRoutes,
  ...healthRoutes,
];

/**
 * The documented REST interface, as a client of the RPCs.
 *
 * It answers everything, with the documented error on unknown paths too, so it goes last into an
 * app; the hosted pages go before it. The app's `trust proxy` decides whose address a caller has.
 */
export function createGateway(options: GatewayOptions): Router {
  const { transport, baseUrl, pages, allowPrivateUrls, version, accessOf } = options;
  const router = express.Router();
  // Made when it is first asked for: that takes a part of the time a start takes.
  let description: string | undefined;

  router.use(setHeaders);
  router.use('/api', openToPages);
  router.options('/api/*path', cors(preflight));
  for (const [path, atPath] of byPath(routes)) {
    const entry = router.route(path);
    for (const served of atPath) {
      entry[served.method]((request: Request, response: Response) => {
        const exchange = exchangeOf(request, response, served.operation);
        return served.handle(exchange).catch((error: unknown) => refuse(error, request, response, served));
      });
    }
    entry.all(otherMethod(allowedAt(path, atPath)));
  }
  router
    .route('/openapi.json')
    .get((_request, response) => {
      response.setHeader('access-control-allow-origin', '*');
      description ??= JSON.stringify(describeApi(routes, { baseUrl, version, accessOf }));
      response.type('application/json').end(description);
    })
    .all(otherMethod('GET, HEAD'));
  router.use(() => {
    throw new Refusal('not_found', 'There is no such route');
  });
  router.use((error: unknown, request: Request, response: Response, _next: NextFunction) =>
    refuse(error, request, response),
  );
  return router;

  function exchangeOf(request: Request, response: Response, { rpc, managed = false }: Operation): Exchange {
    const call = callsFor(transport, request, response);
    async function admit() {
      // What rates and access may depend on; an RPC without such a field takes no notice.
      const input = { formId: idOf(request), managed };
      if (rpc !== undefined) await options.admit(rpc, input, callOptions(request, response));
    }
    return { transport, call, admit, request, response, pages, baseUrl, allowPrivateUrls };
  }

  /** Answers with the documented error: JSON, or a page where a browser posted a form. */
  async function refuse(error: unknown, request: Request, response: Response, served?: Route): Promise<void> {
    if (error instanceof CutOff || response.destroyed) return void request.socket.destroy();
    const refusal = withRequestId(refusalAt(served, error));
    if (response.headersSent) return void response.destroy();
    for (const [name, value] of Object.entries(refusal.headers)) response.setHeader(name, value);
    if (!(await drain(request))) response.setHeader('connection', 'close');

    const { status, reason, details } = refusal;
    const page = served?.operation.forms !== undefined && isFormPost(request) && !prefersJson(request);
    if (!page) return sendJson(response, status, refusal.body);
    const shown =
      status === 422 ? pages.renderProblems(details, request) : pages.renderError(status, reason, request);
    sendPage(response, status, shown);
  }

  /** A fault of the gateway's own is logged under an id that the caller is told, as services do it. */
  function withRequestId(refusal: Refusal): Refusal {
    const { cause } = refusal;
    if (refusal.reason !== 'internal' || cause === undefined) return refusal;
    const requestId = randomUUID();
    options.log.error({ err: cause, request_id: requestId }, 'a request failed in the gateway');
    return new Refusal('internal', `Internal error (request ${requestId})`);
  }
}

/** On a route without a body there is nothing but the query that a service can refuse the content of. */
function refusalAt(served: Route | undefined, error: unknown): Refusal {
  const refusal = refusalOf(error);
  const { body, bodyTypes } = served?.operation ?? {};
  if (refusal.reason !== 'invalid' || body !== undefined || bodyTypes !== undefined) return refusal;
  return new Refusal('bad_request', refusal.message, { details: refusal.details });
}

/** Replies are data of their caller's alone, and nothing a browser should take for a page. */
function setHeaders(_request: Request, response: Response, next: NextFunction): void {
  response.setHeader('x-content-type-options', 'nosniff');
  response.setHeader('cache-control', 'no-store');
  response.setHeader('content-security-policy', "default-src 'none'; frame-ancestors 'none'");
  next();
}

function otherMethod(allow: string) {
  return () => {
    throw new Refusal('method', `This path answers ${allow}`, { headers: { allow } });
  };
}

function byPath(all: readonly Route[]): Map<string, Route[]> {
  return Map.groupBy(all, ({ path }) => path);
}

function allowedAt(path: string, atPath: readonly Route[]): string {
  const methods = new Set(atPath.map(({ method }) => method.toUpperCase()));
  // A person gets a page there, which another room serves.
  if (path === ACTIVATION_PATH) methods.add('GET');
  if (methods.has('GET')) methods.add('HEAD');
  return [...methods].sort().join(', ');
}

/** Any page may ask: which origins may post to a form is for the form's settings. No cookie is ever used. */
function openToPages(_request: Request, response: Response, next: NextFunction): void {
  response.setHeader('access-control-allow-origin', '*');
  response.setHeader('access-control-expose-headers', 'RateLimit,RateLimit-Policy,Retry-After');
  next();
}

/** What a page is told before it sends what it may not send unasked. */
const preflight: cors.CorsOptions = { origin: '*', methods: ['GET', 'HEAD', 'POST'], maxAge: 7200 };

export type GatewayOptions = {
  /** The way to the services, in this process or another. */
  transport: Transport;
  /**
   * Runs what a call passes before its service, and throws what refuses it: authentication, authorization and
   * rate limits.
   */
  admit: (rpc: DescMethod, input: Record<string, unknown>, options: CallOptions) => Promise<void>;
  /** Who may call an RPC, by the authorization table. */
  accessOf: AccessOf;
  /** The public address of the service, without a slash at the end. */
  baseUrl: string;
  /** Whether webhooks may go to private addresses, as in development. */
  allowPrivateUrls: boolean;
  /** The pages that answer form posts. */
  pages: Pages;
  /** The version of the software, for the API description. */
  version: string;
  log: { error(facts: object, message: string): void };
};
