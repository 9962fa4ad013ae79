import type { DescService } from '@bufbuild/protobuf';
import type { ServiceImpl } from '@connectrpc/connect';
import { HostedService } from '../../gen/forms/internal/v1/hosted_pb.js';
import { AuditService } from '../../gen/forms/v1/audit_pb.js';
import { FormsService } from '../../gen/forms/v1/forms_pb.js';
import { KeysService } from '../../gen/forms/v1/keys_pb.js';
import { MailService } from '../../gen/forms/v1/mail_pb.js';
import { OwnersService } from '../../gen/forms/v1/owners_pb.js';
import { SessionsService } from '../../gen/forms/v1/sessions_pb.js';
import { SubmissionsService } from '../../gen/forms/v1/submissions_pb.js';
import { UploadsService } from '../../gen/forms/v1/uploads_pb.js';
import { WebhooksService } from '../../gen/forms/v1/webhooks_pb.js';
import { Health } from '../../gen/grpc/health/v1/health_pb.js';
import { ServerReflection } from '../../gen/grpc/reflection/v1/reflection_pb.js';
import { ServerReflection as ServerReflectionAlpha } from '../../gen/grpc/reflection/v1alpha/reflection_pb.js';
import { createAudit } from './audit/audit.ts';
import { auditService } from './audit/audit-entries.ts';
import { auditedAs } from './audit/audited-methods.ts';
import type { ServiceContext, ServiceOptions } from './context.ts';
import { ensureDemoForm } from './forms/demo-form.ts';
import { createFormReader } from './forms/form-reader.ts';
import { formsService } from './forms/forms.ts';
import { healthService } from './health.ts';
import { hostedService } from './hosted/hosted.ts';
import { createKeyReader, type KeyReader } from './keys/key-reader.ts';
import { keysService, makeFirstKey, registerBootstrapKey } from './keys/keys.ts';
import { type Concurrency, limitConcurrency } from './limits/concurrency.ts';
import { mailService } from './mail/mail.ts';
import { createOwnerReader, type OwnerReader } from './owners/owner-sessions.ts';
import { ownersService } from './owners/owners.ts';
import { reflectionServices } from './reflection.ts';
import { sessionsService } from './sessions/sessions.ts';
import { submissionsService } from './submissions/submissions.ts';
import { removeLeftFiles } from './uploads/left-files.ts';
import { uploadsService } from './uploads/uploads.ts';
import { webhooksService } from './webhooks/webhooks.ts';

/** Makes all services: the one list of them. Who may call what is in `rpc/authorization.ts`. */
export function createServices(options: ServiceOptions): Services {
  const { database, patterns, now, log, settings, metrics } = options;
  const stopping = new AbortController();
  const draining = new AbortController();
  const context: ServiceContext = {
    ...options,
    stopping: stopping.signal,
    draining: draining.signal,
    keys: createKeyReader({ database, now, log, limitGuesses: settings.rateLimit }),
    forms: createFormReader({ database, patterns, now }),
    audit: createAudit({ writer: options.auditWriter, secretKey: options.secretKey, now }),
    streams: limitConcurrency(
      'streams',
      {
        perKey: settings.maxStreamsPerKey,
        perProject: settings.maxStreams,
        total: settings.maxStreamsTotal,
      },
      metrics,
    ),
    waits: limitConcurrency(
      'waits',
      { perKey: settings.maxWaitsPerKey, total: settings.maxWaitsTotal },
      metrics,
    ),
  };
  const contract = [
    service(FormsService, formsService(context)),
    service(SubmissionsService, submissionsService(context)),
    service(SessionsService, sessionsService(context)),
    service(HostedService, hostedService(context)),
    service(UploadsService, uploadsService(context)),
    service(KeysService, keysService(context)),
    service(AuditService, auditService(context)),
    service(WebhooksService, webhooksService(context)),
    service(MailService, mailService(context)),
    service(OwnersService, ownersService(context)),
  ];
  // A method that the table forgets fails the start, not its first call.
  for (const { descriptor } of contract) descriptor.methods.forEach(auditedAs);
  const descriptors = [...contract.map(({ descriptor }) => descriptor), ...ofGrpc];
  const reflection = reflectionServices(descriptors);
  return {
    list: [
      ...contract,
      service(Health, healthService(context, descriptors)),
      service(ServerReflection, reflection.v1),
      service(ServerReflectionAlpha, reflection.v1alpha),
    ],
    keys: context.keys,
    owners: createOwnerReader(options),
    async prepare(bootstrapKey) {
      await ensureDemoForm(options);
      await removeLeftFiles(options);
      if (bootstrapKey === undefined) return { isRevoked: false };
      return registerBootstrapKey(options, bootstrapKey);
    },
    makeFirstKey: () => makeFirstKey(options),
    drain: () => draining.abort(),
    endStreams: () => stopping.abort(),
    streams: context.streams,
    waits: context.waits,
  };
}

/** What every server of gRPC has beside its own services. */
const ofGrpc = [Health, ServerReflection, ServerReflectionAlpha];

function service<S extends DescService>(descriptor: S, implementation: ServiceImpl<S>): Service {
  return { descriptor, implementation };
}

type Service = { descriptor: DescService; implementation: ServiceImpl<DescService> };

export type Services = {
  list: readonly Service[];
  keys: KeyReader;
  owners: OwnerReader;
  /**
   * Makes the demo form, which every installation has, registers `bootstrapKey`, and removes what a process has
   * left that died. To be called before the servers listen; instances may do so at once. `isRevoked` says whether
   * the key was revoked, and so is worth nothing.
   */
  prepare: (bootstrapKey?: string) => Promise<{ isRevoked: boolean }>;
  /**
   * Makes a key with every scope in the default project if there is no key at all, and returns its text, to be
   * shown this once. To be called when nothing can fail any more: who sees no key has no other way in.
   */
  makeFirstKey: () => Promise<string | undefined>;
  /** Says to whoever asks that the service is not ready any more, and takes calls all the same. */
  drain: () => void;
  /** Ends streams and waits: to be called before the servers close. */
  endStreams: () => void;
  /** The streams and waits that are open. */
  streams: Concurrency;
  waits: Concurrency;
};
