import type { HandlerContext } from '@connectrpc/connect';
import type { FormDefinition } from '../domain/definition/definition.ts';
import type { Violation } from '../domain/errors/violations.ts';
import type { JsonObject } from '../domain/json/json.ts';
import type { WindowCounter } from '../domain/limits/window-counter.ts';
import type { Limits } from '../domain/methods.ts';
import type { SecretBox, SecretKey } from '../domain/secrets/secret-key.ts';
import type { Caller } from '../rpc/context.ts';
import type { AuditWriter } from '../store/audit/audit-writer.ts';
import type { Database } from '../store/database/database.ts';
import type { SubmissionWriter } from '../store/submissions/submission-writer.ts';
import type { Log } from '../telemetry/log.ts';
import type { LogOutput } from '../telemetry/log-output.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { Tracing } from '../telemetry/tracing.ts';
import type { Audit } from './audit/audit.ts';
import type { EventFeed } from './events/event-feed.ts';
import type { FormReader } from './forms/form-access.ts';
import type { KeyReader } from './keys/key-reader.ts';
import type { CallsAtOnce } from './limits/calls-at-once.ts';
import type { DiskSpace } from './limits/disk-space.ts';
import type { KeylessStorage } from './limits/keyless-storage.ts';
import type { Spool } from './uploads/spool.ts';
import type { UploadStore } from './uploads/upload-store.ts';

/** What the services need from the process that runs them. */
export type ServiceOptions = {
  database: Database;
  writer: SubmissionWriter;
  auditWriter: AuditWriter;
  /** Seals and opens webhook secrets. */
  secrets: SecretBox;
  /** Signs links and page tokens. */
  secretKey: SecretKey;
  /** Check them: the same key, and the one before it. */
  verifyingKeys: readonly SecretKey[];
  settings: ServiceSettings;
  /** Milliseconds since 1970. */
  now: () => number;
  log: Log;
  /** Where its lines go; absent: somewhere that drops none. */
  logOutput?: Pick<LogOutput, 'dropped' | 'isDropping'> | undefined;
  /** Wakes the delivery workers: events were committed. Called after the commit, never inside. */
  notifyWorkers: () => void;
  /** Tells of events of this process and of others. */
  events: EventFeed;
  uploads: UploadStore;
  disk: DiskSpace;
  /** Bounds what is stored for callers without a key. */
  keylessStorage: KeylessStorage;
  /** Where files lie while they arrive. */
  spool: Spool;
  metrics?: Metrics | undefined;
  tracing?: Tracing | undefined;
};

/** The part of the configuration that services read. */
export type ServiceSettings = {
  /** False: the RPCs marked `openWithoutKeys` answer without a key, in the default project. */
  requireApiKey: boolean;
  /** False: making a form needs a key. */
  allowPublicCreate: boolean;
  /** False: owners get emails of their forms in full before their addresses have confirmed. */
  ownerConfirmation: boolean;
  /** False: there is no gRPC reflection. */
  reflection: boolean;
  /** False: nobody finds the demo form. */
  demo: boolean;
  /** The name of the project of forms made without a key. */
  publicProject: string;
  /** The address of the API, without a slash at the end. */
  baseUrl: string;
  /** The address of the hosted pages, without a slash at the end. */
  hostedUrl: string;
  /** The mail server. Undefined: emails are written to files. */
  smtpUrl?: string | undefined;
  /** Lifts the rules that webhooks are https and public. */
  allowPrivateWebhooks: boolean;
  /** The most webhooks of a project, and of its forms made without a key. */
  maxWebhooks: number;
  /** Seconds before each attempt of a delivery. */
  retrySchedule: readonly number[];
  /** How long the log of deliveries is kept. */
  deliveryRetentionDays: number;
  /** False: no rate is limited. */
  rateLimit: boolean;
  /** The most calls a minute with one key; undefined: any number. */
  rateLimitPerKey?: number | undefined;
  /** How many streams of events a project, one key of it, and all together may have open in this process. */
  maxStreams: number;
  maxStreamsPerKey: number;
  maxStreamsTotal: number;
  /** How many calls of one key, and all together, may wait for sessions in this process. */
  maxWaitsPerKey: number;
  maxWaitsTotal: number;
  /** How many mailboxes that have not confirmed anything a key may have emailed in a day (UTC). */
  notifyMailboxesPerKey: number;
};

/** What services share with each other, beside the options. */
export type ServiceContext = ServiceOptions & {
  forms: FormReader;
  /** Says what is wrong with answers in the words of the form's page, in a language of an `Accept-Language` header. */
  explainRefusals: (
    violations: readonly Violation[],
    definition: FormDefinition,
    given: { answers?: JsonObject | undefined; prefill?: JsonObject | undefined },
    acceptLanguage: string,
  ) => Violation[];
  keys: KeyReader;
  /** Records who does what. */
  audit: Audit;
  /**
   * Counts a call against limits that depend on what it asks for, beside those that the table of methods has. Throws
   * RATE_LIMITED.
   */
  limitRate: (call: Pick<HandlerContext, 'values'>, limits: Limits, formId: string) => Promise<void>;
  /** Counts the bytes of answers that are saved in a session in a minute, by its id. */
  sessionWrites: WindowCounter;
  /** Counts the streams that are open. */
  streams: CallsAtOnce<Caller>;
  /** Counts the calls that wait for sessions. */
  waits: CallsAtOnce<Caller>;
  /** Aborted when the service is about to stop, and gets no more calls. */
  draining: AbortSignal;
  /** Aborted when the service stops: streams and waits end. */
  stopping: AbortSignal;
};
