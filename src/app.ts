import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import express, { type RequestHandler } from 'express';
import type { Logger } from 'pino';
import proxyAddr from 'proxy-addr';
import manifest from '../package.json' with { type: 'json' };
import { type Api, createApi } from './api.ts';
import { BodyBudget, standardLimits } from './body/budget.ts';
import type { Config } from './config.ts';
import { createDelivery, type DeliverySettings } from './delivery/index.ts';
import { networkOf } from './domain/client-network.ts';
import { SecretBox } from './domain/secrets.ts';
import { createGateway } from './gateway/router.ts';
import { registerGauges } from './gauges.ts';
import { type ListenOptions, listen } from './listeners/listeners.ts';
import { type MetricsServer, serveMetrics } from './listeners/metrics.ts';
import { createMcp } from './mcp/router.ts';
import { formPostPages as pages } from './pages/form-post.ts';
import { createHostedPages } from './pages/router.ts';
import { accessOf } from './rpc/authorization.ts';
import { contextOfClient } from './rpc/context.ts';
import { createRpcHandler, type RpcHandler, type RpcHandlerOptions } from './rpc/server.ts';
import { findSecretKey, verifySecretKey } from './secret-key.ts';
import { createAdmin, systemUser } from './services/admin/admin.ts';
import { serveAdminSocket } from './services/admin/socket.ts';
import { watchDiskSpace } from './services/disk-space.ts';
import { createEventFeed } from './services/events/event-feed.ts';
import { createKeylessStorage } from './services/keyless-storage.ts';
import { createPatternMatching } from './services/patterns/pattern-matching.ts';
import { s3UploadStore } from './services/uploads/s3-upload-store.ts';
import { createSpool } from './services/uploads/spool.ts';
import { localUploadStore, type UploadStore } from './services/uploads/upload-store.ts';
import { createAuditWriter } from './store/audit-writer.ts';
import { type Database, openDatabase } from './store/database/database.ts';
import { createSubmissionWriter } from './store/submission-writer.ts';
import { type AccessLog, countBytes, createAccessLog } from './telemetry/access-log.ts';
import { createMetrics, type Metrics } from './telemetry/metrics.ts';
import { type Tracing, traceRequests } from './telemetry/tracing.ts';

/**
 * Starts the whole service: database, services, delivery, and the servers of HTTP/1.1 and HTTP/2. If a part
 * fails to start, those before it are stopped in reverse order.
 *
 * Throws a `StartError`, one line for the person who starts the service.
 */
export async function startApp(
  config: Config,
  { log, now, random, database: given, isFurtherWorker = false }: AppOptions,
): Promise<App> {
  await using started = new AsyncDisposableStack();
  const secretKey = findSecretKey(config);
  const secrets = new SecretBox(secretKey, config.previousSecretKey);
  const database = given ?? started.adopt(await openConfigured(config, log), (opened) => opened.close());
  await verifySecretKey(database, secrets);
  const metrics =
    config.metricsPort === undefined
      ? undefined
      : createMetrics({ version: manifest.version, database: database.engine });
  const tracing = await startTracing(config, now, log);
  if (tracing) started.defer(() => tracing.close());

  const floorMib = config.minFreeDiskMib;
  const floorBytes = floorMib === undefined ? undefined : floorMib * MIB;
  const disk = started.use(await watchDiskSpace({ folder: config.dataDir, floorBytes, log }));

  const uploads = uploadStore(config, now);
  const removeUpload = (id: string) => uploads.remove(id);
  const settings = deliverySettings(config);
  const events = started.adopt(createEventFeed({ database, now, log }), (feed) => feed.close());
  const onEvents = () => events.announce();
  const auditWriter = started.adopt(createAuditWriter({ database, now, log, metrics }), (audit) =>
    audit.close(),
  );
  const delivery = createDelivery({
    database,
    auditWriter,
    secrets,
    secretKey,
    settings,
    now,
    random,
    log,
    removeUpload,
    onEvents,
    metrics,
    tracing,
  });
  const writer = createSubmissionWriter(database, {
    metrics,
    tracing,
    places: () => delivery.places(),
    onCommitted(commit) {
      delivery.onCommitted(commit);
      onEvents();
    },
  });
  started.defer(() => writer.close());
  const patterns = started.adopt(createPatternMatching({ log }), (matching) => matching.close());
  const keylessStorage = started.adopt(
    createKeylessStorage({
      database,
      now,
      log,
      hourlyBytes: config.rateLimit ? config.keylessHourMib * MIB : undefined,
      projectBytes: config.keylessProjectMib * MIB,
    }),
    (storage) => storage.close(),
  );
  const api = createApi({
    database,
    writer,
    auditWriter,
    secrets,
    secretKey,
    verifyingKeys: config.previousSecretKey ? [secretKey, config.previousSecretKey] : [secretKey],
    settings: config,
    now,
    log,
    notifyWorkers() {
      delivery.notify();
      onEvents();
    },
    events,
    uploads,
    disk,
    keylessStorage,
    spool: createSpool(`${config.dataDir}/uploads/spool`),
    patterns,
    metrics,
    tracing,
  });
  const bootstrapKey = await api.prepare(config.bootstrapApiKey);
  if (given === undefined && config.databaseUrl === undefined) {
    const admin = createAdmin({
      database,
      uploads,
      auditWriter,
      user: systemUser(),
      schedule: config.retrySchedule,
      now,
      onChange: () => api.keys.forget(),
    });
    started.defer(await serveAdminSocket({ dataDir: config.dataDir, database, admin, now, log }));
  }

  const metricsServer = await startMetrics(config, metrics, log);
  if (metricsServer) started.defer(() => metricsServer.close());

  delivery.start();
  started.defer(() => delivery.stop(DELIVERY_GRACE_MS));
  const isTrusted = trustedBy(config);
  const { tlsCert: certFile, tlsKey: keyFile } = config;
  const tls = certFile !== undefined && keyFile !== undefined ? { certFile, keyFile } : undefined;
  const bodies = new BodyBudget(standardLimits, metrics);
  const accessLog = createAccessLog({
    log: config.accessLog ? log : undefined,
    metrics,
    isRead: tracing !== undefined,
  });
  const listeners = await listen({
    ...config,
    tls,
    http: traceRequests(tracing, createHttpHandler(config, { api, secrets, accessLog, log })),
    grpc: traceRequests(tracing, rpcHandler(config, { api, accessLog, log, fallback: notFound })),
    ...clientsBehind(isTrusted),
    bodies,
    metrics,
    now,
    log,
  });
  started.defer(() => listeners.close(CALLS_GRACE_MS));
  if (metrics) registerGauges(metrics, { database, writer, bodies, disk, listeners, api, config });
  started.defer(() => api.endStreams());
  started.defer(async () => {
    api.drain();
    listeners.drain();
    await sleep(config.drainSeconds * 1000);
  });
  const isFirstKeyWanted = config.bootstrapApiKey === undefined && !isFurtherWorker;
  const firstKey = isFirstKeyWanted ? await api.makeFirstKey() : undefined;

  const scheme = tls === undefined ? 'http' : 'https';
  const owned = started.move();
  return {
    url: `${scheme}://localhost:${listeners.port}`,
    grpcUrl: `${scheme}://localhost:${listeners.grpcPort}`,
    metricsUrl: metricsServer?.url,
    firstKey,
    isBootstrapKeyRevoked: bootstrapKey.isRevoked,
    close: () => owned.disposeAsync(),
  };
}

/** What is not used is not loaded. */
async function startTracing(
  { traceEndpoint: endpoint, traceShare: share }: Config,
  now: () => number,
  log: Logger,
): Promise<Tracing | undefined> {
  if (endpoint === undefined) return undefined;
  const { openTracing } = await import('./telemetry/open-telemetry.ts');
  return openTracing({ endpoint, share, version: manifest.version, now, log });
}

async function startMetrics(
  { metricsHost: host, metricsPort: port }: Config,
  metrics: Metrics | undefined,
  log: Logger,
): Promise<MetricsServer | undefined> {
  return metrics === undefined || port === undefined ? undefined : serveMetrics({ host, port, metrics, log });
}

/** RPCs over HTTP/1.1 are handled before Express; everything else is a page or the REST interface. */
function createHttpHandler(config: Config, { api, secrets, accessLog, log }: HttpParts): RequestListener {
  const transport = api.transport();
  const { baseUrl, hostedUrl, allowPublicCreate, allowPrivateWebhooks: allowPrivateUrls } = config;
  const app = express();
  if (accessLog?.writes === true) countBytes(app.response);
  app.disable('x-powered-by');
  app.disable('etag');
  app.set('trust proxy', config.trustProxy);
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
  return rpcHandler(config, {
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

function rpcHandler(config: Config, { api, accessLog, log, fallback }: RpcHandlerParts): RpcHandler {
  const trusted = trustedBy(config);
  return createRpcHandler({
    routes: (router) => api.routes(router),
    contextValues: (request) => {
      const { ':authority': authority = request.headers.host } = request.headers;
      return contextOfClient(proxyAddr(request as IncomingMessage, trusted), authority?.toString());
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
      const chain = proxyAddr.all(request as IncomingMessage, isTrusted);
      return clientAt(chain.at(-1) ?? '', chain.length - 1);
    },
  };
}

function openConfigured(config: Config, log: Logger): Promise<Database> {
  const { databaseUrl, dataDir } = config;
  const migrate = config.migrate ? 'run' : 'check';
  if (databaseUrl !== undefined) return openDatabase({ databaseUrl, migrate, log });
  const onLockLost = () => {
    log.fatal('The lock on DATA_DIR is gone, so another process may use it. This one stops at once.');
    process.exit(1);
  };
  return openDatabase({ dataDir: `${dataDir}/database`, migrate, onLockLost, log });
}

function uploadStore({ uploads, dataDir }: Config, now: () => number): UploadStore {
  return uploads === undefined ? localUploadStore(`${dataDir}/uploads`) : s3UploadStore(uploads, now);
}

function deliverySettings(config: Config): DeliverySettings {
  return {
    schedule: config.retrySchedule,
    workers: config.deliveryWorkers,
    allowPrivate: config.allowPrivateWebhooks,
    baseUrl: config.baseUrl,
    hostedUrl: config.hostedUrl,
    mailFrom: config.mailFrom,
    operatorEmail: config.operatorEmail,
    smtpUrl: config.smtpUrl,
    mailDir: `${config.dataDir}/mail`,
    retentionDays: config.deliveryRetentionDays,
    auditRetentionDays: config.auditRetentionDays,
  };
}

const MIB = 1024 ** 2;

/** How long a stop waits for calls under way, and for deliveries after them, in milliseconds. */
const CALLS_GRACE_MS = 10_000;
const DELIVERY_GRACE_MS = 25_000;

/** A running service. */
export type App = {
  url: string;
  grpcUrl: string;
  /** Where the metrics are; undefined if they are off, or their port can't be used. */
  metricsUrl: string | undefined;
  /** The text of the first API key, if it was made by this start. */
  firstKey: string | undefined;
  /** Whether BOOTSTRAP_API_KEY was revoked, and so is worth nothing. */
  isBootstrapKeyRevoked: boolean;
  /** Finishes what is under way and stops everything. */
  close(): Promise<void>;
};

type IsTrusted = (address: string, index: number) => boolean;

type HttpParts = { api: Api; secrets: SecretBox; accessLog: AccessLog | undefined; log: Logger };

type RpcHandlerParts = Pick<RpcHandlerOptions, 'accessLog' | 'log' | 'fallback'> & { api: Api };

export type AppOptions = {
  log: Logger;
  /** Milliseconds since 1970. */
  now: () => number;
  /** A number in [0, 1). */
  random: () => number;
  /** Whether another process of this start has begun before, which then makes and shows the first key. */
  isFurtherWorker?: boolean;
  /** An open database to use in place of the configured one; the caller closes it. */
  database?: Database;
};
