import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import manifest from '../package.json' with { type: 'json' };
import { Admission } from './admission/admission.ts';
import { compose, type Outside } from './compose.ts';
import type { Config } from './config.ts';
import { SecretBox } from './domain/secrets/secret-key.ts';
import { registerGauges } from './gauges.ts';
import { listen } from './listeners/listeners.ts';
import { type MetricsServer, serveMetrics } from './listeners/metrics.ts';
import { findSecretKey, verifySecretKey } from './secret-key.ts';
import { systemUser } from './services/admin/admin.ts';
import { finishRestore, refuseWhileRestoring } from './services/admin/folder-copy.ts';
import { serveAdminSocket } from './services/admin/socket.ts';
import { watchDiskSpace } from './services/limits/disk-space.ts';
import { openUploadStore } from './services/uploads/s3-upload-store.ts';
import { createSpool } from './services/uploads/spool.ts';
import { makeDataFolder } from './store/database/data-folder.ts';
import { type Database, openDatabase } from './store/database/database.ts';
import { createMetrics, type Metrics } from './telemetry/metrics.ts';
import { type Tracing, traceRequests } from './telemetry/tracing.ts';

/**
 * Starts the whole service: opens what it needs outside of itself, composes it, and listens with the servers of
 * HTTP/1.1 and HTTP/2. If a part fails to start, those before it are stopped in reverse order.
 *
 * Throws a `StartError`, one line for the person who starts the service.
 */
export async function startApp(
  config: Config,
  { log, logOutput, now, random, database: given, floorBytes, isFurtherWorker = false }: AppOptions,
): Promise<App> {
  await using started = new AsyncDisposableStack();
  refuseWhileRestoring(config.dataDir);
  finishRestore(config.dataDir);
  // With a PostgreSQL server, too, uploads and saved emails lie there.
  makeDataFolder(config.dataDir);
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

  const disk = started.use(await watchDiskSpace({ folder: config.dataDir, floorBytes, log }));

  const metricsServer = await startMetrics(config, metrics, log);
  if (metricsServer) started.defer(() => metricsServer.close());

  const uploads = openUploadStore(config, now);
  const service = started.adopt(
    await compose(config, {
      database,
      uploads,
      spool: createSpool(`${config.dataDir}/uploads/spool`),
      disk,
      secrets,
      secretKey,
      now,
      random,
      log,
      logOutput,
      metrics,
      tracing,
    }),
    (composed) => composed.close(),
  );
  const { api, writer, auditWriter } = service;
  if (given === undefined && config.databaseUrl === undefined) {
    const { retrySchedule: schedule, dataDir } = config;
    const onChange = () => api.keys.forget();
    const admin = { database, auditWriter, user: systemUser(), schedule, now, onChange };
    started.defer(await serveAdminSocket(admin, { dataDir, log }));
  }

  const { host, port, grpcPort, tlsCert: certFile, tlsKey: keyFile } = config;
  const tls = certFile !== undefined && keyFile !== undefined ? { certFile, keyFile } : undefined;
  const { http, grpc, refuse, ...clients } = service.handlers;
  const admission = new Admission({ ...config, ...clients, metrics, now, log });
  const listeners = await listen({
    host,
    port,
    grpcPort,
    tls,
    refuse,
    admission,
    http: traceRequests(tracing, http),
    grpc: traceRequests(tracing, grpc),
    log,
  });
  started.defer(() => listeners.close(CALLS_GRACE_MS));
  if (metrics) registerGauges(metrics, { database, writer, admission, disk, api, config, logOutput });
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
    isBootstrapKeyRevoked: service.isBootstrapKeyRevoked,
    close: () => owned.disposeAsync(),
  };
}

/** What is not used is not loaded. */
async function startTracing(
  { traceEndpoint: endpoint }: Config,
  now: () => number,
  log: Logger,
): Promise<Tracing | undefined> {
  if (endpoint === undefined) return undefined;
  const { openTracing } = await import('./telemetry/open-telemetry.ts');
  return openTracing({ endpoint, version: manifest.version, now, log });
}

async function startMetrics(
  { metricsHost: host, metricsPort: port }: Config,
  metrics: Metrics | undefined,
  log: Logger,
): Promise<MetricsServer | undefined> {
  return metrics === undefined || port === undefined ? undefined : serveMetrics({ host, port, metrics, log });
}

function openConfigured(config: Config, log: Logger): Promise<Database> {
  const { databaseUrl, databasePoolerUrl: poolerUrl, dataDir } = config;
  const migrate = config.migrate ? 'run' : 'check';
  if (databaseUrl !== undefined) {
    return openDatabase({ databaseUrl, poolerUrl, migrate, waitMs: config.startWaitSeconds * 1000, log });
  }
  const onLockLost = () => {
    log.fatal('The lock on DATA_DIR is gone, so another process may use it. This one stops at once.');
    process.exit(1);
  };
  return openDatabase({ dataDir: `${dataDir}/database`, migrate, onLockLost, log });
}

/** How long a stop waits for calls under way, in milliseconds. */
const CALLS_GRACE_MS = 10_000;

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

export type AppOptions = Pick<Outside, 'logOutput'> & {
  log: Logger;
  now: Outside['now'];
  /** A number in [0, 1). */
  random: () => number;
  /** Whether another process of this start has begun before, which then makes and shows the first key. */
  isFurtherWorker?: boolean;
  /** An open database to use in place of the configured one; the caller closes it. */
  database?: Database;
  /** Another bound than the standard one on the free space of the disk. */
  floorBytes?: number | undefined;
};
