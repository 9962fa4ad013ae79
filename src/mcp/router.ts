import type { DescMethod } from '@bufbuild/protobuf';
import type { Transport } from '@connectrpc/connect';
import cors from 'cors';
import express, { type NextFunction, type Request, type Response, type Router } from 'express';
import { FormsService } from '../../gen/forms/v1/forms_pb.js';
import { limitsOf } from '../domain/limits/message-limits.ts';
import { holds, type Scope } from '../domain/scopes.ts';
import { readJson } from '../http/body.ts';
import { type Call, callOptions, callsFor, requestIdOf } from '../http/call.ts';
import { contentError, HttpError } from '../http/errors.ts';
import { type ErrorLog, sendError, sendJson, sendPieces } from '../http/reply.ts';
import { accessLineOf, noteCaller } from '../telemetry/access-log.ts';
import { describeCatalog, describeForModels, describeServer } from './discovery.ts';
import type { Exchange, Sealer } from './exchange.ts';

/**
 * The MCP server at `/mcp`, as a client of the RPCs, and what describes it to those who look for it. Requests to other
 * paths pass.
 *
 * Each request stands for itself: the key in its header decides what it may do.
 */
export function createMcp(options: McpOptions): Router {
  const { transport, identify, accessOf, sealer, baseUrl, allowPrivateUrls, ownOrigins, version, log } =
    options;
  const router = express.Router();
  const facts = { baseUrl, version };

  router
    .route('/mcp')
    .all(harden, refuseOtherOrigins(ownOrigins))
    .all(cors({ origin: [...ownOrigins], methods: ['POST'], maxAge: 7200 }))
    .post((request, response) => answer(request, response).catch((error) => refuse(error, request, response)))
    .all((_request, response) => {
      // Without streams and sessions there is nothing to GET or DELETE.
      response.setHeader('allow', 'POST, OPTIONS');
      sendRefusal(response, 405, { message: 'This path answers POST' });
    });
  router.get(['/mcp/server-card', '/.well-known/mcp.json'], (_request, response) =>
    sendPublic(response, 'application/mcp-server-card+json', JSON.stringify(describeServer(facts))),
  );
  router.get('/.well-known/mcp/catalog.json', (_request, response) =>
    sendPublic(response, 'application/json', JSON.stringify(describeCatalog(facts))),
  );
  router.get('/llms.txt', (_request, response) =>
    sendPublic(response, 'text/plain; charset=utf-8', describeForModels(facts)),
  );
  return router;

  async function answer(request: Request, response: Response): Promise<void> {
    const caller = await identify(callOptions(request, response, 'management').headers);
    noteCaller(accessLineOf(request), caller);
    // The largest message that any tool takes.
    const { value: body, problems } = await readJson(request, limitsOf(FormsService.method.createForm));
    if (problems.length > 0) throw contentError(problems, undefined, 'bad_request');
    if (Array.isArray(body)) throw new HttpError('bad_request', 'Expected one message, not a list of them');
    const exchange: Exchange = {
      call: callsOnce(callsFor(transport, request, response, 'management')),
      mayCall: (rpc) => mayCall(accessOf(rpc), caller),
      keyId: caller.keyId ?? '',
      sealer,
      baseUrl,
      allowPrivateUrls,
      logFault(error) {
        const requestId = requestIdOf(request);
        log.error({ err: error, requestId }, 'a tool failed');
        return requestId;
      },
    };
    // The library takes 30 MiB and a fifth of a second to load, which a service without such clients saves.
    const { answerMcp } = await import('./server.ts');
    await sendWeb(response, await answerMcp(webRequestOf(request, baseUrl), body, { exchange, version }));
  }

  function refuse(error: unknown, request: Request, response: Response): Promise<void> {
    const send = ({ status, body }: HttpError) => {
      const { message, ...data } = body.error;
      sendRefusal(response, status, { message, data });
    };
    return sendError(error, { request, response, log, send });
  }
}

/** Refuses a request as a whole, as JSON-RPC has it. */
function sendRefusal(response: Response, status: number, error: { message: string; data?: object }): void {
  sendJson(response, status, { jsonrpc: '2.0', id: null, error: { code: REFUSED, ...error } });
}

/** The code of JSON-RPC for errors of a server's own. */
const REFUSED = -32_000;

function harden(_request: Request, response: Response, next: NextFunction): void {
  response.setHeader('cache-control', 'no-store');
  response.setHeader('x-content-type-options', 'nosniff');
  next();
}

/** Browsers say which page a request comes from. Those of others may not use a key that the browser has. */
function refuseOtherOrigins(ownOrigins: readonly string[]) {
  return ({ headers: { origin } }: Request, response: Response, next: NextFunction) => {
    if (origin === undefined || ownOrigins.includes(origin)) return next();
    const message = 'Pages of this origin may not call: RPC_ALLOWED_ORIGINS does not name it';
    sendRefusal(response, 403, { message });
  };
}

/** All calls of one request count as one where rates are limited. */
function callsOnce(calls: Call): Call {
  let called = false;
  return (method, input, further) => {
    const continued = called;
    called = true;
    return calls(method, input, { ...further, continued });
  };
}

function mayCall({ key, scope, openWithoutKeys }: Access, { keyId, scopes }: Caller): boolean {
  if (key === 'none' || scope === undefined) return true;
  if (keyId === undefined) return key === 'optional' || openWithoutKeys === true;
  return holds(scopes, scope);
}

/** The head of a request as the library takes it; the body is read apart. */
function webRequestOf({ method, originalUrl, headers }: Request, baseUrl: string): globalThis.Request {
  const web = new Headers();
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined && name !== 'content-length')
      web.set(name, Array.isArray(value) ? value.join(', ') : value);
  }
  return new globalThis.Request(new URL(originalUrl, baseUrl), { method, headers: web });
}

async function sendWeb(response: Response, { status, headers, body }: globalThis.Response): Promise<void> {
  response.status(status);
  for (const [name, value] of headers) response.setHeader(name, value);
  if (body === null) response.end();
  else await sendPieces(response, body);
}

/** Sends what everybody may read, on any page. */
function sendPublic(response: Response, type: string, text: string): void {
  response.setHeader('access-control-allow-origin', '*');
  response.setHeader('cache-control', 'public, max-age=3600');
  response.setHeader('x-content-type-options', 'nosniff');
  response.setHeader('content-type', type);
  response.end(text);
}

export type McpOptions = {
  /** Leads to the services. */
  transport: Transport;
  /** Tells whose key is in the headers of a caller. Throws as a call does without a valid one. */
  identify: (headers: Record<string, string>) => Promise<Caller>;
  /** Who may call an RPC, by the authorization table. */
  accessOf: (rpc: DescMethod) => Access;
  sealer: Sealer;
  /** The public address of the service, without a slash at the end. */
  baseUrl: string;
  /** Whether webhooks may go to private addresses, as in development. */
  allowPrivateUrls: boolean;
  /** The origins whose pages may call. */
  ownOrigins: readonly string[];
  /** The version of the software. */
  version: string;
  log: ErrorLog;
};

type Access = { key: 'none' | 'optional' | 'required'; scope?: Scope; openWithoutKeys?: boolean };

/** `keyId` is undefined for calls without a key, where none is required. */
type Caller = { project: string; keyId: string | undefined; scopes: readonly string[] };
