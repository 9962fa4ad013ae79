import type { DescService } from '@bufbuild/protobuf';
import {
  type ConnectRouter,
  createServiceImplSpec,
  type Interceptor,
  type ServiceImpl,
  type ServiceImplSpec,
  type Transport,
} from '@connectrpc/connect';
import { Health } from '../../gen/grpc/health/v1/health_pb.js';
import { identifyCallers } from './caller.ts';
import type { ServiceDeps, Shared } from './deps.ts';
import { createFormReader } from './form-reader.ts';
import { healthService } from './health.ts';
import { createKeyReader } from './key-reader.ts';
import { logCalls } from './logging.ts';
import { limitRates } from './rate-limit.ts';
import { createLocalTransport } from './transport.ts';

/**
 * Makes all services and the one chain of interceptors that every call passes, whichever door it
 * comes through.
 */
export function createServices(deps: ServiceDeps): ServiceRegistry {
  const { database, now, log, settings } = deps;
  const shared: Shared = {
    ...deps,
    keys: createKeyReader({ database, now, log, limitGuesses: settings.rateLimit }),
    forms: createFormReader({ database, now }),
  };
  const interceptors: Interceptor[] = [
    logCalls({ log, now }),
    identifyCallers({ keys: shared.keys, requireApiKey: settings.requireApiKey }),
    ...(settings.rateLimit ? [limitRates({ database, now, perKey: settings.rateLimitPerKey })] : []),
  ];
  const services = servicesOf(shared);
  return {
    routes(router) {
      for (const service of services) service.route(router, interceptors);
    },
    transport: () =>
      createLocalTransport(
        services.map(({ spec }) => spec),
        interceptors,
      ),
  };
}

/** Every service there is. Who may call what stands in access.ts. */
function servicesOf(shared: Shared): Service[] {
  return [serve(Health, healthService(shared))];
}

function serve<S extends DescService>(descriptor: S, implementation: ServiceImpl<S>): Service {
  return {
    spec: createServiceImplSpec(descriptor, implementation),
    route: (router, interceptors) => router.service(descriptor, implementation, { interceptors }),
  };
}

type Service = { spec: ServiceImplSpec; route(router: ConnectRouter, interceptors: Interceptor[]): void };

export type ServiceRegistry = {
  /** Registers all services with the door that takes RPCs from the network, interceptors included. */
  routes(router: ConnectRouter): void;
  /** A transport for callers in this process: the gateway and the hosted pages. */
  transport(): Transport;
};
