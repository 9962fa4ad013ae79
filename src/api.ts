import { createRpc, type Rpc } from './rpc/registry.ts';
import type { ServiceOptions } from './services/context.ts';
import { createServices, type Services } from './services/index.ts';
import { refuseWhileLow } from './services/limits/disk-space.ts';
import { DatabaseUnavailable, isDiskFull, Overloaded } from './store/database/faults.ts';
import { countCall } from './store/rate-limits.ts';

/** Makes all services and puts them behind the interceptors that every call passes, on every protocol. */
export function createApi(options: ServiceOptions): Api {
  const { database, now, log, settings } = options;
  const services = createServices(options);
  const rpc = createRpc({
    services: services.list,
    keys: services.keys,
    owners: services.owners,
    requireApiKey: settings.requireApiKey,
    ownUrls: [settings.baseUrl, settings.hostedUrl],
    allowedHosts: settings.allowedHosts,
    rateLimits: settings.rateLimit && {
      perKey: settings.rateLimitPerKey,
      countInDatabase: (key, seconds) => countCall(database, key, seconds),
    },
    describeTemporaryFault,
    guards: [refuseWhileLow(options.disk, database.engine, options.metrics)],
    tracing: options.tracing,
    now,
    log,
  });
  const { keys, prepare, makeFirstKey, drain, endStreams, streams, waits } = services;
  return { ...rpc, keys, prepare, makeFirstKey, drain, endStreams, streams, waits };
}

function describeTemporaryFault(error: unknown): string | undefined {
  if (error instanceof Overloaded) return 'The service is overloaded';
  if (isDiskFull(error)) return 'The disk is full';
  return error instanceof DatabaseUnavailable ? 'The database is out of reach' : undefined;
}

export type Api = Rpc &
  Pick<Services, 'keys' | 'prepare' | 'makeFirstKey' | 'drain' | 'endStreams' | 'streams' | 'waits'>;
