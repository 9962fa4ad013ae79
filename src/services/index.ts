import type { DescService } from '@bufbuild/protobuf';
import type { ServiceImpl } from '@connectrpc/connect';
import { Health } from '../../gen/grpc/health/v1/health_pb.js';
import { ServerReflection } from '../../gen/grpc/reflection/v1/reflection_pb.js';
import { HostedService } from '../../gen/headlessforms/internal/v1/hosted_pb.js';
import { AuditService } from '../../gen/headlessforms/v1/audit_pb.js';
import { FormsService } from '../../gen/headlessforms/v1/forms_pb.js';
import { KeysService } from '../../gen/headlessforms/v1/keys_pb.js';
import { MailService } from '../../gen/headlessforms/v1/mail_pb.js';
import { OwnersService } from '../../gen/headlessforms/v1/owners_pb.js';
import { SessionsService } from '../../gen/headlessforms/v1/sessions_pb.js';
import { SubmissionsService } from '../../gen/headlessforms/v1/submissions_pb.js';
import { UploadsService } from '../../gen/headlessforms/v1/uploads_pb.js';
import { WebhooksService } from '../../gen/headlessforms/v1/webhooks_pb.js';
import { HOUR_MS } from '../domain/limits/limits.ts';
import { createWindowCounter } from '../domain/limits/window-counter.ts';
import { policyOf } from '../domain/methods.ts';
import type { Caller } from '../rpc/context.ts';
import { createAudit } from './audit/audit.ts';
import { auditService } from './audit/audit-entries.ts';
import type { ServiceContext, ServiceOptions } from './context.ts';
import { formerReplies } from './former-replies.ts';
import { ensureDemoForm } from './forms/demo-form.ts';
import { formsService } from './forms/forms.ts';
import { healthService } from './health.ts';
import { hostedService } from './hosted/hosted.ts';
import { withReplays } from './idempotency.ts';
import { KeyReader } from './keys/key-reader.ts';
import { keysService, makeFirstKey, registerBootstrapKey } from './keys/keys.ts';
import { type CallsAtOnce, limitCallersAtOnce } from './limits/calls-at-once.ts';
import { mailService } from './mail/mail.ts';
import { createOwnerReader, type OwnerReader } from './owners/owner-sessions.ts';
import { ownersService } from './owners/owners.ts';
import { reflectionService } from './reflection.ts';
import { describeSession } from './sessions/describe-session.ts';
import { sessionsService } from './sessions/sessions.ts';
import { submissionsService } from './submissions/submissions.ts';
import { uploadsService } from './uploads/uploads.ts';
import { webhooksService } from './webhooks/webhooks.ts';

/** Makes all services: the one list of them. Who may call what is in `domain/methods.ts`. */
export function createServices(
  options: ServiceOptions & Pick<ServiceContext, 'forms' | 'limitRate' | 'explainRefusals'>,
): Services {
  const { now, settings } = options;
  const stopping = new AbortController();
  const draining = new AbortController();
  const context: ServiceContext = {
    ...options,
    stopping: stopping.signal,
    draining: draining.signal,
    keys: new KeyReader({ ...options, limitGuesses: settings.rateLimit }),
    audit: createAudit({ writer: options.auditWriter, secretKey: options.secretKey, now }),
    sessionWrites: createWindowCounter({ now }),
    streams: limitCallersAtOnce('streams', {
      perKey: settings.maxStreamsPerKey,
      perProject: settings.maxStreams,
      total: settings.maxStreamsTotal,
    }),
    waits: limitCallersAtOnce('waits', {
      perKey: settings.maxWaitsPerKey,
      perProject: Number.POSITIVE_INFINITY,
      total: settings.maxWaitsTotal,
    }),
  };
  const service = <S extends DescService>(descriptor: S, implementation: ServiceImpl<S>): Service => ({
    descriptor,
    implementation: withReplays(context, descriptor, implementation, {
      ...formerReplies(context),
      describeSession,
    }),
  });
  const contract = [
    service(FormsService, formsService(context)),
    service(SubmissionsService, submissionsService(context)),
    service(SessionsService, sessionsService(context)),
    service(UploadsService, uploadsService(context)),
    service(KeysService, keysService(context)),
    service(AuditService, auditService(context)),
    service(WebhooksService, webhooksService(context)),
    service(MailService, mailService(context)),
    service(OwnersService, ownersService(context)),
  ];
  // Of the service's own pages alone: neither reflection nor health names it.
  const internal = service(HostedService, hostedService(context));
  // A method that the table forgets fails the start, not its first call.
  for (const { descriptor } of [...contract, internal]) descriptor.methods.forEach(policyOf);
  // What every server of gRPC has beside its own services.
  const ofGrpc = settings.reflection ? [Health, ServerReflection] : [Health];
  const descriptors = [...contract.map(({ descriptor }) => descriptor), ...ofGrpc];
  return {
    list: [
      ...contract,
      internal,
      service(Health, healthService(context, descriptors)),
      ...(settings.reflection ? [service(ServerReflection, reflectionService(descriptors))] : []),
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

/** Removes what processes that died have left of files that were arriving. */
async function removeLeftFiles({ database, spool, now, log }: ServiceOptions): Promise<void> {
  // The embedded database has one process. Beside others, a file may be on its way to one of them.
  const before = database.engine === 'pglite' ? Number.POSITIVE_INFINITY : now() - LONGEST_PAUSE_MS;
  await spool.removeLeft(before).catch((error: unknown) => {
    log.warn({ err: error }, 'Could not remove what is left of uploads; the next start tries again.');
  });
}

/** No upload pauses for so long. */
const LONGEST_PAUSE_MS = HOUR_MS;

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
  /** Says to anyone who asks that the service is not ready any more, and takes calls all the same. */
  drain: () => void;
  /** Ends streams and waits: to be called before the servers close. */
  endStreams: () => void;
  /** The streams and waits that are open. */
  streams: CallsAtOnce<Caller>;
  waits: CallsAtOnce<Caller>;
};
