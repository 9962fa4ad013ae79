import { ConnectError } from '@connectrpc/connect';
import cors from 'cors';
import express, {
  type NextFunction,
  type Request,
  type RequestHandler,
  type Response,
  type Router,
} from 'express';
import { NextCall, Reason } from '../../gen/headlessforms/v1/errors_pb.js';
import { hasBody } from '../admission/read-body.ts';
import { formFileJsonSchema } from '../domain/definition/form-file.ts';
import { failed, failureOf, refailed } from '../domain/errors/failure.ts';
import { MAX_UNASKED_BYTES } from '../domain/limits/limits.ts';
import type { RestError } from '../http/errors.ts';
import { isFormPost } from '../http/multipart.ts';
import { type ErrorLog, prefersJson, sendError, sendJson, sendPage, sendTagged } from '../http/reply.ts';
import { requestIdOf } from '../http/rpc-client.ts';
import { accessLineOf } from '../telemetry/access-log.ts';
import { auditRoutes } from './audit.ts';
import { deliveryRoutes } from './deliveries.ts';
import { ACTIVATION_PATH, activationRoutes } from './forms/activation.ts';
import { formRoutes } from './forms/forms.ts';
import { publicFormRoutes } from './forms/public-form.ts';
import { versionRoutes } from './forms/versions.ts';
import { describeProtos, healthRoutes } from './health.ts';
import { keyRoutes } from './keys.ts';
import { describeApi } from './openapi/document.ts';
import { comesWithoutKey, type Route } from './route.ts';
import { RouteContext, type RouteOptions } from './route-context.ts';
import { sessionRoutes } from './sessions/sessions.ts';
import { exportRoutes, streamRoutes } from './submissions/export.ts';
import { submissionRoutes } from './submissions/submissions.ts';
import { submitRoutes } from './submissions/submit.ts';
import { uploadRoutes } from './uploads.ts';
import { webhookRoutes } from './webhooks.ts';

/** Every documented route, the busiest first. Of paths that could both match, the literal one comes first. */
export const routes: readonly Route[] = [
  ...submitRoutes,
  ...submissionRoutes,
  ...exportRoutes,
  ...streamRoutes,
  ...formRoutes,
  ...publicFormRoutes,
  ...versionRoutes,
  ...activationRoutes,
  ...sessionRoutes,
  ...webhookRoutes,
  ...deliveryRoutes,
  ...uploadRoutes,
  ...keyRoutes,
  ...auditRoutes,
  ...healthRoutes,
];

/**
 * The documented REST interface, as a client of the RPCs.
 *
 * It answers every request, unknown paths with the documented error, so it is the last handler of an app,
 * behind the hosted pages. The app's `trust proxy` decides which address a caller has.
 */
export function createGateway(options: GatewayOptions): Router {
  const { baseUrl, pages, version, allowPrivateUrls, allowedOrigins, log } = options;
  const router = express.Router();
  router.use(openToPages(allowedOrigins));
  for (const [path, atPath] of byPath(routes)) {
    const entry = router.route(path);
    for (const served of atPath) {
      entry[served.method]((request: Request, response: Response) => {
        // What Express would keep for a next handler adds up where thousands of requests wait. There is none. And its
        // object of the path's ids takes seven times what a plain one does.
        request.next = noNext;
        request.params = { ...request.params };
        serve(request, response, served);
      });
    }
    entry.all(otherMethod(allowedAt(path, atPath)));
  }
  const serveDescription = (path: string, type: string, describe: () => string | Uint8Array) => {
    // Made at the first request for it, since it would slow down every start.
    let description: string | Uint8Array | undefined;
    router
      .route(path)
      .get((request, response) => {
        response.setHeader('access-control-allow-origin', '*');
        description ??= describe();
        sendTagged(request, response.type(type), description);
      })
      .all(otherMethod('GET, HEAD'));
  };
  serveDescription('/openapi.json', 'application/json', () =>
    JSON.stringify(describeApi(routes, { baseUrl, version, allowPrivateUrls })),
  );
  serveDescription('/schemas/form.json', 'application/schema+json', () =>
    JSON.stringify(formFileJsonSchema({ allowPrivateUrls })),
  );
  serveDescription('/descriptor.binpb', 'application/protobuf', describeProtos);
  router.use(() => {
    throw failed(Reason.NOT_FOUND, 'Route not found. See /openapi.json.', {
      nextCall: NextCall.CORRECTED,
    });
  });
  router.use((error: unknown, request: Request, response: Response, _next: NextFunction) =>
    refuse(error, request, response),
  );
  return router;

  function serve(request: Request, response: Response, served: Route): void {
    const context = new RouteContext(request, response, served, options);
    const handled = isAskedFirst(request, served)
      ? context.admit().then(() => served.handle(context))
      : served.handle(context);
    handled.catch((error: unknown) => fail(error, context, served));
  }

  async function fail(error: unknown, context: RouteContext, served: Route): Promise<void> {
    const { request, response } = context;
    try {
      await refuse(await admitFirst(error, context), request, response, served);
    } catch (unanswered) {
      const { ownRequestId } = accessLineOf(request) ?? {};
      const facts = { err: unanswered, requestId: requestIdOf(request), ownRequestId };
      log.error(facts, 'a request could not be answered');
      response.destroy();
    }
  }

  /** Answers with the documented error: JSON, or a page where a browser posted a form. */
  function refuse(error: unknown, request: Request, response: Response, served?: Route): Promise<void> {
    const send = (refusal: RestError) => {
      const byBrowser = isFormPost(request) && !prefersJson(request) && refusal.reason !== 'media_type';
      const isUnknown = served === undefined && refusal.reason === 'not_found';
      const page = isUnknown ? asksForPage(request) : served?.operation.forms !== undefined && byBrowser;
      if (!page) return sendJson(response, refusal.status, refusal.body);
      const shown = pages.renderError(refusal, request, requestIdOf(request));
      return sendPage(response, refusal.status, shown);
    };
    return sendError(errorAt(served, error), { request, response, log, send });
  }
}

/**
 * Whether a caller is asked for key and rate before the body is read. The body of one who shows a key counts as that
 * of a known caller then. Without a key a small body costs less than the question, and the call that takes a file is
 * asked by itself.
 */
function isAskedFirst(request: Request, { operation }: Route): boolean {
  if (!hasBody(request)) return false;
  if (!comesWithoutKey(request) || request.headers['content-encoding'] !== undefined) return true;
  if (operation.bodyTypes !== undefined) return false;
  return !(Number(request.headers['content-length']) <= MAX_UNASKED_BYTES);
}

/**
 * What to answer with. What the gateway itself finds wrong with a request is told only to those who may call:
 * strangers learn nothing.
 */
async function admitFirst(error: unknown, context: RouteContext): Promise<unknown> {
  if (!(error instanceof ConnectError)) return error;
  return context.admit().then(
    () => error,
    (refusal: unknown) => refusal,
  );
}

function noNext(): void {}

/** On a route without a body, content that a service refuses can only come from the query: 400. */
function errorAt(served: Route | undefined, error: unknown): unknown {
  const { body, bodyTypes } = served?.operation ?? {};
  if (body !== undefined || bodyTypes !== undefined) return error;
  const failure = failureOf(error);
  if (!(error instanceof ConnectError) || failure?.reason !== Reason.INVALID) return error;
  return refailed(error, { ...failure, reason: Reason.BAD_REQUEST });
}

/**
 * Says which pages of other origins may call: those of every origin below `/api`, where the form's settings decide
 * which may post to it, and those of `allowedOrigins` below `/v1`. No cookie is used. Preflight requests are answered
 * by the routes.
 */
function openToPages(allowedOrigins: readonly string[]): RequestHandler {
  const toAll = cors({ ...common, origin: '*', methods: ['GET', 'HEAD', 'POST'] });
  const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];
  const toAllowed = cors({ ...common, origin: [...allowedOrigins], methods });
  return (request, response, next) => {
    const [, tier] = /^\/(api|v1)\//i.exec(request.path) ?? [];
    const isPublic = tier?.toLowerCase() === 'api';
    if (isPublic && request.method !== 'OPTIONS') {
      // All that the middleware would do, on the most frequent calls.
      response.setHeader('access-control-allow-origin', '*');
      response.setHeader('access-control-expose-headers', exposed);
      next();
    } else if (isPublic) toAll(request, response, next);
    // Most other calls come from no page, and say nothing of origins.
    else if (tier !== undefined && request.headers.origin !== undefined) toAllowed(request, response, next);
    else next();
  };
}

/** What pages may read of replies beside the body. */
const exposed = 'RateLimit,RateLimit-Policy,Retry-After,X-Request-Id,ETag,Link,WWW-Authenticate';

const common = {
  exposedHeaders: exposed,
  maxAge: 7200,
  preflightContinue: true,
};

/** Answers `OPTIONS`, and refuses what a path does not know. */
function otherMethod(allow: string) {
  return (request: Request, response: Response) => {
    response.setHeader('allow', allow);
    if (request.method === 'OPTIONS') return void response.status(204).end();
    throw failed(Reason.METHOD, `This path answers ${allow}`);
  };
}

function byPath(all: readonly Route[]): Map<string, Route[]> {
  return Map.groupBy(all, ({ path }) => path);
}

function allowedAt(path: string, atPath: readonly Route[]): string {
  const methods = new Set(atPath.map(({ method }) => method.toUpperCase()));
  // GET shows people a page, which the hosted pages serve.
  if (path === ACTIVATION_PATH) methods.add('GET');
  if (methods.has('GET')) methods.add('HEAD');
  return [...methods].sort().join(', ');
}

export type GatewayOptions = RouteOptions & {
  /** The version of the software, for the API description. */
  version: string;
  /** Origins whose pages may call routes below `/v1`. */
  allowedOrigins: readonly string[];
  log: ErrorLog;
};

/** Whether a browser asks for a page: programs take anything. */
function asksForPage({ method, headers }: Request): boolean {
  return method === 'GET' && /\btext\/html\b/.test(headers.accept ?? '');
}
