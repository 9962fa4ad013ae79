import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import manifest from '../package.json' with { type: 'json' };
import { createApi } from './api.ts';
import { BodyBudget, standardLimits } from './body/budget.ts';
import type { Config } from './config.ts';
import { createDelivery, type DeliverySettings } from './delivery/index.ts';
import { SecretBox } from './domain/secrets/secret-box.ts';
import { registerGauges } from './gauges.ts';
import { listen } from './listeners/listeners.ts';
import { type MetricsServer, serveMetrics } from './listeners/metrics.ts';
import { createRequestHandlers } from './request-handlers.ts';
import { findSecretKey, verifySecretKey } from './secret-key.ts';
import { createAdmin, systemUser } from './services/admin/admin.ts';
import { serveAdminSocket } from './services/admin/socket.ts';
import { createEventFeed } from './services/events/event-feed.ts';
import { watchDiskSpace } from './services/limits/disk-space.ts';
import { createKeylessStorage } from './services/limits/keyless-storage.ts';
import { createPatternMatching } from './services/patterns/pattern-matching.ts';
import { openUploadStore } from './services/uploads/open-upload-store.ts';
import { createSpool } from './services/uploads/spool.ts';
import { createAuditWriter } from './store/audit/audit-writer.ts';
import { type Database, openDatabase } from './store/database/database.ts';
import { createSubmissionWriter } from './store/submissions/submission-writer.ts';
import { createAccessLog } from './telemetry/access-log.ts';
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

  const uploads = openUploadStore(config, now);
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
  const { tlsCert: certFile, tlsKey: keyFile } = config;
  const tls = certFile !== undefined && keyFile !== undefined ? { certFile, keyFile } : undefined;
  const bodies = new BodyBudget(standardLimits, metrics);
  const accessLog = createAccessLog({
    log: config.accessLog ? log : undefined,
    metrics,
    isRead: tracing !== undefined,
  });
  const { http, grpc, ...clients } = createRequestHandlers(config, { api, secrets, accessLog, log });
  const listeners = await listen({
    ...config,
    tls,
    ...clients,
    http: traceRequests(tracing, http),
    grpc: traceRequests(tracing, grpc),
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
