import type { DescMethod } from '@bufbuild/protobuf';
import type { Logger } from 'pino';
import { NextCall } from '../gen/headlessforms/v1/errors_pb.js';
import type { Config } from './config.ts';
import { createDelivery, type DeliveryOptions } from './delivery/index.ts';
import { demoFormId } from './domain/ids.ts';
import { policyOf } from './domain/methods.ts';
import { explainRefusals } from './pages/form/explain-refusals.ts';
import { createRequestHandlers, type RequestHandlers } from './request-handlers.ts';
import { factsOf } from './rpc/context.ts';
import { createRateLimits } from './rpc/rate-limits.ts';
import { createRpc, type Rpc } from './rpc/registry.ts';
import type { ServiceOptions } from './services/context.ts';
import { createEventFeed } from './services/events/event-feed.ts';
import { createFormReader } from './services/forms/form-access.ts';
import { createServices, type Services } from './services/index.ts';
import { refuseWhileLow } from './services/limits/disk-space.ts';
import { createKeylessStorage } from './services/limits/keyless-storage.ts';
import { AuditWriter } from './store/audit/audit-writer.ts';
import { followDatabase, type MachineClock } from './store/database/clock.ts';
import {
  DatabaseUnavailable,
  isDiskFull,
  LIST_STATEMENT_MS,
  Overloaded,
  ReadTooLong,
  transientFault,
} from './store/database/faults.ts';
import { countCall } from './store/rate-limits.ts';
import { createSubmissionWriter, type SubmissionWriter } from './store/submissions/submission-writer.ts';
import { createAccessLog } from './telemetry/access-log.ts';

/**
 * Puts the service together on an open database, and begins to deliver. Everything that it reaches beyond its own
 * memory is given as `outside`; who listens passes requests to its handlers.
 */
export async function compose(config: Config, outside: Outside): Promise<Service> {
  await using started = new AsyncDisposableStack();
  const { database, uploads, secrets, secretKey, now, log, metrics, tracing } = outside;
  if ('correct' in now) started.use(await followDatabase(now, { database, log }));
  const events = started.adopt(createEventFeed({ database, now, log }), (feed) => feed.close());
  const onEvents = () => events.announce();
  const auditWriter = started.adopt(
    new AuditWriter({ database, now, log, entryLog: log, metrics }),
    (audit) => audit.close(),
  );
  const delivery = createDelivery({
    ...outside,
    auditWriter,
    settings: {
      ...config,
      schedule: config.retrySchedule,
      concurrency: config.deliveryWorkers,
      allowPrivate: config.allowPrivateWebhooks,
      mailDir: `${config.dataDir}/mail`,
      retentionDays: config.deliveryRetentionDays,
    },
    removeUpload: (id) => uploads.remove(id),
    onEvents,
  });
  const writer = createSubmissionWriter(database, {
    metrics,
    tracing,
    capacity: () => delivery.capacity(),
    onCommitted(commit) {
      delivery.onCommitted(commit);
      onEvents();
    },
  });
  started.defer(() => writer.close());
  const keylessStorage = createKeylessStorage({
    database,
    now,
    hourlyBytes: config.rateLimit ? config.keylessHourMib * MIB : undefined,
    projectBytes: config.keylessProjectMib * MIB,
  });
  const api = createApi({
    ...outside,
    writer,
    auditWriter,
    verifyingKeys: config.previousSecretKey ? [secretKey, config.previousSecretKey] : [secretKey],
    settings: config,
    notifyWorkers() {
      delivery.notify();
      onEvents();
    },
    events,
    keylessStorage,
  });
  const bootstrapKey = await api.prepare(config.bootstrapApiKey);
  const accessLog = createAccessLog({
    log: config.accessLog ? log : undefined,
    metrics,
    isRead: tracing !== undefined,
  });
  const parts = { api, secrets, reactions: events, accessLog, log, now, fetch: outside.fetch };
  const handlers = createRequestHandlers(config, parts);
  delivery.start();
  started.defer(() => delivery.stop(DELIVERY_GRACE_MS));
  const owned = started.move();
  return {
    api,
    writer,
    auditWriter,
    handlers,
    isBootstrapKeyRevoked: bootstrapKey.isRevoked,
    close: () => owned.disposeAsync(),
  };
}

/** Makes all services and puts them behind the interceptors that every call passes, on every protocol. */
export function createApi(options: ServiceOptions): Api {
  const { database, now, log, settings } = options;
  const forms = createFormReader({ database, now, hidden: settings.demo ? undefined : demoFormId });
  const rateLimits = settings.rateLimit
    ? createRateLimits({
        perKey: settings.rateLimitPerKey,
        isForm: (id) => forms.exists(id),
        countInDatabase: (key, seconds) => countCall(database, key, seconds),
        now,
      })
    : undefined;
  const services = createServices({
    ...options,
    forms,
    explainRefusals,
    limitRate: async (call, limits, formId) => rateLimits?.(limits, factsOf(call), formId),
  });
  const rpc = createRpc({
    services: services.list,
    keys: services.keys,
    owners: services.owners,
    requireApiKey: settings.requireApiKey,
    ownUrls: [settings.baseUrl, settings.hostedUrl],
    rateLimits,
    describeTemporaryFault,
    refuse: refuseWhileLow(options.disk, database.engine, options.metrics),
    within: ({ caller, owner }, { narrowedBy }, call) => {
      const reader = caller?.keyId === undefined ? (owner ? 'owners' : 'strangers') : caller.projectId;
      return database.slots.within({ reader, readsMuch: narrowedBy !== undefined }, call);
    },
    onLimit: options.metrics?.onLimit,
    tracing: options.tracing,
    now,
    log,
  });
  return { ...services, ...rpc };
}

function describeTemporaryFault(error: unknown, method: DescMethod) {
  if (error instanceof ReadTooLong) {
    const { narrowedBy = 'less' } = policyOf(method);
    const message = `This took longer than ${LIST_STATEMENT_MS / 1000} s and was stopped: ask for ${narrowedBy}`;
    return { message, nextCall: NextCall.CORRECTED };
  }
  const what = temporaryFaultOf(error);
  return what === undefined ? undefined : { message: `${what}; try again soon` };
}

function temporaryFaultOf(error: unknown): string | undefined {
  if (error instanceof Overloaded) return 'The service is overloaded';
  if (isDiskFull(error)) return 'The disk is full';
  if (error instanceof DatabaseUnavailable) return 'The database is out of reach';
  return transientFault(error) === undefined ? undefined : 'Something the service needs is out of reach';
}

const MIB = 1024 ** 2;

/** How long a stop waits for deliveries under way, in milliseconds. */
const DELIVERY_GRACE_MS = 25_000;

/** The services, and the ways to call them. */
export type Api = Rpc & Services;

/** The service, without servers. */
export type Service = {
  api: Api;
  writer: SubmissionWriter;
  auditWriter: AuditWriter;
  /** Answer requests, no matter whom they come from. */
  handlers: RequestHandlers;
  /** Whether BOOTSTRAP_API_KEY was revoked, and so is worth nothing. */
  isBootstrapKeyRevoked: boolean;
  /** Finishes the deliveries under way and stops everything; to be called when no more requests come. */
  close(): Promise<void>;
};

/** What the service reaches beyond its own memory. */
export type Outside = Pick<
  ServiceOptions,
  'database' | 'uploads' | 'spool' | 'disk' | 'secrets' | 'secretKey' | 'metrics' | 'tracing' | 'logOutput'
> &
  Pick<DeliveryOptions, 'resolveHost' | 'openConnector' | 'openMailSocket' | 'random'> & {
    /** Milliseconds since 1970. A `machineClock` is corrected by the database's; any other one is taken as it is. */
    now: MachineClock | (() => number);
    /** Reads what OAUTH_ISSUER publishes; absent: that of Node. */
    fetch?: typeof globalThis.fetch;
    log: Logger;
  };
