import type { DescService } from '@bufbuild/protobuf';
import {
  type ConnectRouter,
  createServiceImplSpec,
  type Interceptor,
  type ServiceImpl,
  type ServiceImplSpec,
  type Transport,
} from '@connectrpc/connect';
import { FormsService } from '../../gen/forms/v1/forms_pb.js';
import { HostedService } from '../../gen/forms/v1/hosted_pb.js';
import { KeysService } from '../../gen/forms/v1/keys_pb.js';
import { MailService } from '../../gen/forms/v1/mail_pb.js';
import { SessionsService } from '../../gen/forms/v1/sessions_pb.js';
import { SubmissionsService } from '../../gen/forms/v1/submissions_pb.js';
import { UploadsService } from '../../gen/forms/v1/uploads_pb.js';
import { WebhooksService } from '../../gen/forms/v1/webhooks_pb.js';
import { Health } from '../../gen/grpc/health/v1/health_pb.js';
import { identifyCallers } from './calls/caller.ts';
import { createKeyReader } from './calls/key-reader.ts';
import { callLimits } from './calls/limits.ts';
import { logCalls } from './calls/logging.ts';
import { limitRates } from './calls/rate-limit.ts';
import { createLocalTransport } from './calls/transport.ts';
import { answerUnaryGrpc } from './calls/unary-grpc.ts';
import { refuseUnreadable } from './calls/unreadable.ts';
import { ensureDemoForm } from './demo-form.ts';
import type { ServiceDeps, Shared } from './deps.ts';
import { ensureFirstKey } from './first-key.ts';
import { createFormReader } from './form-reader.ts';
import { formsService } from './forms.ts';
import { healthService } from './health.ts';
import { hostedService } from './hosted.ts';
import { keysService } from './keys.ts';
import { mailService } from './mail.ts';
import { sessionsService } from './sessions.ts';
import { submissionsService } from './submissions.ts';
import { uploadsService } from './uploads.ts';
import { webhooksService } from './webhooks.ts';

/**
 * Makes all services and the one chain of interceptors that every call passes, whichever door it
 * comes through.
 */
export function createServices(deps: ServiceDeps): ServiceRegistry {
  const { database, now, log, settings } = deps;
  const stopping = new AbortController();
  const shared: Shared = {
    ...deps,
    stopping: stopping.signal,
    keys: createKeyReader({ database, now, log, limitGuesses: settings.rateLimit }),
    forms: createFormReader({ database, now }),
  };
  const interceptors: Interceptor[] = [
    logCalls({ log, now }),
    identifyCallers({ keys: shared.keys, requireApiKey: settings.requireApiKey }),
    ...(settings.rateLimit ? [limitRates({ database, now, perKey: settings.rateLimitPerKey })] : []),
  ];
  const services = servicesOf(shared);
  const specs = services.map(({ spec }) => spec);
  return {
    routes(router) {
      for (const service of services) service.route(router, interceptors);
      answerUnaryGrpc(router, { specs, interceptors });
      refuseUnreadable(router);
    },
    transport: () => createLocalTransport(specs, interceptors),
    async prepare(bootstrapKey) {
      await ensureDemoForm(deps);
      return ensureFirstKey(deps, bootstrapKey);
    },
    endStreams: () => stopping.abort(),
  };
}

/** Every service there is. Who may call what stands in access.ts. */
function servicesOf(shared: Shared): Service[] {
  return [
    serve(FormsService, formsService(shared)),
    serve(SubmissionsService, submissionsService(shared)),
    serve(SessionsService, sessionsService(shared)),
    serve(HostedService, hostedService(shared)),
    serve(UploadsService, uploadsService(shared)),
    serve(KeysService, keysService(shared)),
    serve(WebhooksService, webhooksService(shared)),
    serve(MailService, mailService(shared)),
    serve(Health, healthService(shared)),
  ];
}

function serve<S extends DescService>(descriptor: S, implementation: ServiceImpl<S>): Service {
  return {
    spec: createServiceImplSpec(descriptor, implementation),
    route: (router, interceptors) =>
      router.service(descriptor, implementation, { ...callLimits, interceptors }),
  };
}

type Service = { spec: ServiceImplSpec; route(router: ConnectRouter, interceptors: Interceptor[]): void };

export type ServiceRegistry = {
  /** Registers all services with the door that takes RPCs from the network, interceptors included. */
  routes(router: ConnectRouter): void;
  /** A transport for callers in this process: the gateway and the hosted pages. */
  transport(): Transport;
  /**
   * Makes what every installation has: the demo form and a first key. To be called before the doors
   * open; instances may do so at once. Returns the first key's text if it was made now and is to be
   * shown, else undefined. `bootstrapKey` is registered instead of making one.
   */
  prepare(bootstrapKey?: string): Promise<string | undefined>;
  /** Ends the streams that would go on for ever: to be called before the doors close. */
  endStreams(): void;
};
