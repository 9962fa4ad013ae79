import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import express, { type RequestHandler } from 'express';
import type { Logger } from 'pino';
import proxyAddr from 'proxy-addr';
import manifest from '../package.json' with { type: 'json' };
import type { Api } from './api.ts';
import { Http1Request } from './body/pieces.ts';
import type { Config } from './config.ts';
import { networkOf } from './domain/addresses/client-network.ts';
import type { SecretBox } from './domain/secrets/secret-box.ts';
import { createGateway } from './gateway/router.ts';
import type { ListenOptions } from './listeners/listeners.ts';
import { createMcp } from './mcp/router.ts';
import { formPostPages as pages } from './pages/form-post.ts';
import { createHostedPages } from './pages/router.ts';
import { accessOf } from './rpc/authorization.ts';
import { contextOfClient } from './rpc/context.ts';
import { createRpcHandler, type RpcHandler, type RpcHandlerOptions } from './rpc/network/server.ts';
import { type AccessLog, countBytes } from './telemetry/access-log.ts';

/**
 * What the listeners do with requests: `http` answers those of HTTP/1.1, RPCs, pages and REST alike, and `grpc` those
 * of HTTP/2, which are RPCs. The others tell whose connections, bodies and calls are counted together, and who has shown a key.
 */
export function createRequestHandlers(config: Config, parts: Parts): RequestHandlers {
  return {
    http: handleHttp1(config, parts),
    grpc: handleRpcs(config, { ...parts, fallback: notFound }),
    ...clientsBehind(trustedBy(config)),
    isKnownClient: (client) => parts.api.keys.isKnownClient(client),
  };
}

/** RPCs over HTTP/1.1 are handled before Express; everything else is a page or the REST interface. */
function handleHttp1(config: Config, { api, secrets, accessLog, log }: Parts): RequestListener {
  const transport = api.transport();
  const { baseUrl, hostedUrl, allowPublicCreate, allowPrivateWebhooks: allowPrivateUrls } = config;
  const app = express();
  // Express makes requests inherit from its own, which would take the listener's class from them.
  const ofExpress = Object.getOwnPropertyDescriptors(express.request);
  Object.setPrototypeOf(app.request, Object.create(Http1Request.prototype, ofExpress));
  if (accessLog?.writes === true) countBytes(app.response);
  app.disable('x-powered-by');
  app.disable('etag');
  app.set('trust proxy', config.trustProxy);
  // Nothing here has any, and Express would make an object for each request.
  app.response.locals = Object.freeze({});
  const { version } = manifest;
  const { admit, identify } = api;
  const ownOrigins = [baseUrl, hostedUrl].map((url) => new URL(url).origin).concat(config.rpcAllowedOrigins);
  const mcp = {
    transport,
    identify,
    accessOf,
    sealer: secrets,
    baseUrl,
    allowPrivateUrls,
    ownOrigins,
    version,
    log,
  };
  app.use(
    express
      .Router()
      .use(passOnRest)
      .use(createHostedPages({ transport, baseUrl, hostedUrl, allowPublicCreate, log }))
      .use(createMcp(mcp)),
  );
  app.use(createGateway({ transport, admit, accessOf, baseUrl, allowPrivateUrls, pages, version, log }));
  return handleRpcs(config, {
    api,
    accessLog,
    log,
    // Express expects the request and response of HTTP/1.1, which this listener's always are.
    fallback: (request, response) => app(request as IncomingMessage, response as ServerResponse),
  });
}

/** REST calls are the most frequent: they are not compared with the paths of all pages first. */
const passOnRest: RequestHandler = (request, _response, next) =>
  next(ofRestOnly.test(request.path) ? 'router' : undefined);

/** Of the activation link, GET is a page. */
const ofRestOnly = /^\/(?:v1\/|api\/(?!forms\/[^/]+\/activate))/;

function handleRpcs(config: Config, { api, accessLog, log, fallback }: RpcParts): RpcHandler {
  const trusted = trustedBy(config);
  return createRpcHandler({
    routes: (router) => api.routes(router),
    contextValues: (request) => {
      const { ':authority': authority = request.headers.host } = request.headers;
      return contextOfClient(addressesOf(request, trusted).at(-1) ?? '', authority?.toString());
    },
    fallback,
    allowedOrigins: config.rpcAllowedOrigins,
    accessLog,
    log,
  });
}

const notFound: RpcHandler = (_request, response) => {
  response.statusCode = 404;
  response.setHeader('cache-control', 'no-store');
  response.setHeader('x-content-type-options', 'nosniff');
  response.end();
};

/** Whether an address is a proxy that is believed, by its place in the chain: 0 is the one that connects. */
function trustedBy({ trustProxy }: Config): IsTrusted {
  return typeof trustProxy === 'number'
    ? (_address, index) => index < trustProxy
    : proxyAddr.compile(trustProxy);
}

/** Whose connections and bodies are counted together: the network of a client, but not a proxy that is believed. */
function clientsBehind(isTrusted: IsTrusted): Pick<ListenOptions, 'clientOf' | 'clientOfRequest'> {
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
  // The header is not even read where nobody is believed to have written it.
  if (!isTrusted(remoteAddress, 0)) return [remoteAddress];
  return proxyAddr.all(request as IncomingMessage, isTrusted);
}

type ClientRequest = Parameters<RpcHandler>[0];

type IsTrusted = (address: string, index: number) => boolean;

type RequestHandlers = { http: RequestListener; grpc: RpcHandler } & Pick<
  ListenOptions,
  'clientOf' | 'clientOfRequest' | 'isKnownClient'
>;

type Parts = { api: Api; secrets: SecretBox; accessLog: AccessLog | undefined; log: Logger };

type RpcParts = Pick<RpcHandlerOptions, 'accessLog' | 'log' | 'fallback'> & { api: Api };
