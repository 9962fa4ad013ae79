import type { IncomingMessage, ServerResponse } from 'node:http';
import { constants } from 'node:zlib';
import type { ConnectError } from '@connectrpc/connect';
import compression from 'compression';
import express, { type Express, type RequestHandler } from 'express';
import type { Logger } from 'pino';
import proxyAddr from 'proxy-addr';
import { Reason } from '../gen/headlessforms/v1/errors_pb.js';
import manifest from '../package.json' with { type: 'json' };
import type { AdmissionOptions } from './admission/admission.ts';
import { Http1Request } from './admission/chunk-budget.ts';
import type { Config } from './config.ts';
import { networkOf } from './domain/addresses/ip-address.ts';
import { failed } from './domain/errors/failure.ts';
import type { SecretBox } from './domain/secrets/secret-key.ts';
import { createGateway } from './gateway/router.ts';
import { parseQuery } from './http/charset.ts';
import { restErrorOf } from './http/errors.ts';
import { isFormPost } from './http/multipart.ts';
import type { ListenOptions } from './listeners/listeners.ts';
import { createTokenCheck } from './mcp/authorization/access-tokens.ts';
import { defaultTokenScopes } from './mcp/authorization/token-scopes.ts';
import { createMcp, type McpOptions } from './mcp/router.ts';
import { loadGuides } from './pages/guides.ts';
import { createFormPostPages } from './pages/html-form.ts';
import { createHostedPages } from './pages/router.ts';
import { contextOf } from './rpc/context.ts';
import { createRpcHandler, type RpcHandler, type RpcHandlerOptions } from './rpc/network/server.ts';
import type { Rpc } from './rpc/registry.ts';
import type { Services } from './services/index.ts';
import type { AccessLog } from './telemetry/access-log.ts';

/**
 * What the listeners do with requests: `http` answers those of HTTP/1.1, RPCs, pages and REST alike, and `grpc` those
 * of HTTP/2, which are RPCs. The others tell whose connections, bodies and calls are counted together, and who has
 * shown a key.
 */
export function createRequestHandlers(config: Config, parts: Parts): RequestHandlers {
  const { api, accessLog, log } = parts;
  const isTrusted = trustedBy(config);
  const answerRpcs = (fallback: RpcHandlerOptions['fallback']) =>
    createRpcHandler({
      served: api.served,
      contextValues: (request) => {
        const { ':authority': authority = request.headers.host } = request.headers;
        const clientAddress = addressesOf(request, isTrusted).at(-1) ?? '';
        return contextOf({ clientAddress, host: authority?.toString() });
      },
      fallback,
      allowedOrigins: config.rpcAllowedOrigins,
      isTls: config.tlsCert !== undefined,
      accessLog,
      log,
    });
  const app = createExpressApp(config, parts);
  // RPCs are handled before Express; everything else is a page or the REST interface.
  const http = answerRpcs((request, response, refusal) => {
    if (refusal !== undefined) return refuseRest(response, refusal);
    // Express expects the request and response of HTTP/1.1, which this listener's always are.
    app(request as IncomingMessage, response as ServerResponse);
  });
  const grpc = answerRpcs(notFound);
  return {
    http,
    grpc,
    refuse: (request, response) => http(request, response, tooManyWaiting),
    ...clientsBehind(isTrusted),
    isKnownClient: (client) => api.keys.isKnownClient(client),
  };
}

/** The pages, MCP and the REST interface. */
function createExpressApp(config: Config, parts: Parts): Express {
  const { api, secrets: sealer, reactions, log, now } = parts;
  const {
    baseUrl,
    hostedUrl,
    databaseUrl,
    allowPublicCreate,
    docs,
    demo,
    allowPrivateWebhooks: allowPrivateUrls,
  } = config;
  const app = express();
  // Express makes requests inherit from its own, which would take the listener's class from them.
  const ofExpress = Object.getOwnPropertyDescriptors(express.request);
  Object.setPrototypeOf(app.request, Object.create(Http1Request.prototype, ofExpress));
  app.disable('x-powered-by');
  app.disable('etag');
  app.set('trust proxy', config.trustProxy);
  app.set('query parser', parseQuery);
  // No handler uses `locals`, for which Express would make an object for each request.
  app.response.locals = Object.freeze({});
  const { admit } = api;
  const { oauthIssuer: issuer, oauthScopes: scopes = defaultTokenScopes } = config;
  const tokens = issuer === undefined ? undefined : { issuer, scopes };
  const identify = identifierFor(config, tokens, parts);
  const shared = { transport: api.transport(), baseUrl, allowPrivateUrls, version: manifest.version, log };
  const ownOrigins = [baseUrl, hostedUrl].map((url) => new URL(url).origin).concat(config.rpcAllowedOrigins);
  const guides = docs ? loadGuides(baseUrl) : [];
  app.use(compressReplies);
  const pagesAndMcp = express
    .Router()
    .use(createHostedPages({ ...shared, now, hostedUrl, allowPublicCreate, docs, demo, guides }))
    .use(createMcp({ ...shared, identify, sealer, reactions, ownOrigins, tokens, guides }));
  // REST calls are the most frequent: they are not compared with the paths of all pages first. With a server they go on
  // in the next phase of the event loop, so that more of them share a statement: that is a fifth more of reads by id and
  // of submissions. With the embedded database it
  // gains nothing, and others wait longer beside a busy project.
  app.use((request, response, next) => {
    if (!ofRestOnly.test(request.path)) pagesAndMcp(request, response, next);
    else if (databaseUrl === undefined) next();
    else setImmediate(next);
  });
  const allowedOrigins = config.rpcAllowedOrigins;
  app.use(createGateway({ ...shared, admit, allowedOrigins, pages: createFormPostPages(baseUrl) }));
  return app;
}

/** Finds out who calls `/mcp`: by an access token, too, if there is an issuer. No other path takes one. */
function identifierFor(
  { oauthAudience: audience, oauthProject: project }: Config,
  tokens: McpOptions['tokens'],
  { api, now, log, fetch = globalThis.fetch }: Parts,
): McpOptions['identify'] {
  if (tokens === undefined) return api.identify;
  const check = createTokenCheck({ ...tokens, audience, fetch, now, log });
  return (header, values) =>
    api.identify(header, values, async (text, clientAddress) => {
      const caller = await api.keys.ofToken(() => check(text), project, clientAddress);
      return caller ?? api.keys.find(text, clientAddress);
    });
}

/**
 * Compresses replies of REST and pages, by brotli or gzip, where their length can tell nobody anything.
 *
 * Who sees the length of a compressed reply, and can have a victim's browser ask for it with a text of their choice,
 * guesses a secret beside that text character by character (BREACH). A browser adds cookies by itself, and nothing else
 * that opens a secret. So a reply to a request with cookies stays as it is: owners' pages, which show answers beside
 * what is searched for, and pages that show what a visitor has kept. So does a reply to any post but that of an HTML
 * form: those that show a key or a signing secret once, beside the name or URL that was sent.
 *
 * Streams of events are sent line by line, so they are never compressed.
 */
const compressReplies: RequestHandler = (request, response, next) => {
  const { method, headers } = request;
  const isRead = method === 'GET' || method === 'HEAD' || isFormPost(request);
  if (headers['accept-encoding'] === undefined || headers.cookie !== undefined || !isRead) next();
  else compress(request, response, next);
};

/** Replies are made for one request each: higher levels take more time than they save. */
const compress = compression({
  level: 4,
  brotli: { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } },
  filter(request, response) {
    const type = String(response.getHeader('content-type'));
    if (type.startsWith('text/event-stream')) return false;
    // Files come with their size, by which clients show how far a download is and see that it is whole.
    if (response.hasHeader('content-disposition') && response.hasHeader('content-length')) return false;
    return type.startsWith('application/x-ndjson') || compression.filter(request, response);
  },
});

/** Of the activation link, GET is a page. */
const ofRestOnly = /^\/(?:v1\/|api\/(?!forms\/[^/]+\/activate))/;

const tooManyWaiting = failed(
  Reason.RATE_LIMITED,
  'Too many requests from your address are waiting. Try again in a second.',
);

/** Answers a request that is no call of an RPC with an error, as the REST interface does. */
function refuseRest(response: Parameters<RpcHandler>[1], error: ConnectError): void {
  const { status, headers, body } = restErrorOf(error);
  response.statusCode = status;
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  response.setHeader('content-type', 'application/json; charset=utf-8');
  response.end(JSON.stringify(body));
}

const notFound: RpcHandler = (_request, response) => {
  response.statusCode = 404;
  response.end();
};

/** Whether an address is a proxy that is believed, by its place in the chain: 0 is the one that connects. */
function trustedBy({ trustProxy }: Config): IsTrusted {
  return typeof trustProxy === 'number'
    ? (_address, index) => index < trustProxy
    : proxyAddr.compile(trustProxy);
}

/** Whose connections and bodies are counted together: the network of a client, but not a proxy that is believed. */
function clientsBehind(isTrusted: IsTrusted): Pick<AdmissionOptions, 'clientOf' | 'clientOfRequest'> {
  const clientAt = (address: string, index: number) =>
    isTrusted(address, index) ? undefined : networkOf(address);
  return {
    clientOf: (address) => clientAt(address, 0),
    clientOfRequest(request) {
      const chain = addressesOf(request, isTrusted);
      return clientAt(chain.at(-1) ?? '', chain.length - 1);
    },
  };
}

/** The address that connects, and those before it as far as proxies are believed: the client is last. */
function addressesOf(request: ClientRequest, isTrusted: IsTrusted): string[] {
  const { remoteAddress = '' } = request.socket;
  // Without a trusted proxy anybody can write the header, so it is not read.
  if (!isTrusted(remoteAddress, 0)) return [remoteAddress];
  return proxyAddr.all(request as IncomingMessage, isTrusted);
}

type ClientRequest = Parameters<RpcHandler>[0];

type IsTrusted = (address: string, index: number) => boolean;

export type RequestHandlers = { http: RpcHandler; grpc: RpcHandler } & Pick<ListenOptions, 'refuse'> &
  Pick<AdmissionOptions, 'clientOf' | 'clientOfRequest' | 'isKnownClient'>;

type Parts = {
  api: Rpc & Pick<Services, 'keys'>;
  secrets: SecretBox;
  accessLog: AccessLog | undefined;
  log: Logger;
  /** Milliseconds since 1970. */
  now: () => number;
  fetch: typeof globalThis.fetch | undefined;
} & Pick<McpOptions, 'reactions'>;
