import type { MikroORM } from '@mikro-orm/core';
import { AuditChainEntity, AuditEntryEntity } from '../audit/audit-log.ts';
import { AttemptEntity, DeliveryEntity } from '../deliveries/log.ts';
import { QueuedDeliveryEntity } from '../deliveries/queue-table.ts';
import { EventEntity } from '../events.ts';
import { FormEntity } from '../forms/forms.ts';
import { VersionEntity } from '../forms/versions.ts';
import { IdempotencyKeyEntity } from '../idempotency-keys.ts';
import { InstallationEntity } from '../installation.ts';
import { KeyEntity, RevokedKeyEntity } from '../keys.ts';
import { AutoresponseEntity, MailAllowanceEntity } from '../mail/mail-allowances.ts';
import { MailRecipientEntity, MailStopEntity } from '../mail/mail-recipients.ts';
import { MailedLinkEntity } from '../mail/mailed-links.ts';
import { migrations } from '../migrations/index.ts';
import { OwnerSessionEntity, UsedSignInLinkEntity } from '../owners/owners.ts';
import { ProjectEntity } from '../projects/projects.ts';
import { RateLimitEntity } from '../rate-limits.ts';
import { RemovalEntity } from '../removal/removals.ts';
import { SessionEntity } from '../sessions/session-table.ts';
import { CounterEntity, SubmissionEntity } from '../submissions/submissions.ts';
import { UploadEntity } from '../uploads.ts';
import { WebhookEntity } from '../webhooks/webhooks.ts';
import type { EntityManager, Row } from './queries.ts';
import type { Holder } from './read-slots.ts';

/**
 * Every table of the service.
 *
 * There are no foreign keys: rows arrive in groups, and a key check would lock the form's row for each
 * of them. The named queries keep what belongs together in one transaction.
 */
export const entities = [
  ProjectEntity,
  KeyEntity,
  RevokedKeyEntity,
  FormEntity,
  VersionEntity,
  CounterEntity,
  SessionEntity,
  SubmissionEntity,
  EventEntity,
  WebhookEntity,
  QueuedDeliveryEntity,
  DeliveryEntity,
  AttemptEntity,
  MailRecipientEntity,
  MailStopEntity,
  MailAllowanceEntity,
  MailedLinkEntity,
  AutoresponseEntity,
  UploadEntity,
  RateLimitEntity,
  InstallationEntity,
  IdempotencyKeyEntity,
  OwnerSessionEntity,
  UsedSignInLinkEntity,
  AuditChainEntity,
  AuditEntryEntity,
  RemovalEntity,
];

/** What both engines tell MikroORM. */
export const ormOptions = {
  entities,
  allowGlobalContext: false,
  ensureDatabase: false,
  migrations: { migrationsList: migrations, snapshot: false, tableName: 'migrations', silent: true },
  // Rows go straight to the caller: an identity map over a read would keep each of them alive.
  disableIdentityMap: true,
};

/** What the tables lack of what the entities describe, as SQL. */
export async function schemaDifference(orm: Pick<MikroORM, 'schema'>): Promise<string> {
  return orm.schema.getUpdateSchemaSQL({ wrap: false });
}

/** What the two engines have in common beneath `Database`. Nothing here retries. */
export type Engine = {
  engine: 'pglite' | 'postgres';
  /** Always the same one: fork it. */
  em: EntityManager;
  /** Brings the tables up to date, taking turns with other processes. */
  migrate(): Promise<void>;
  /** What the tables lack of what the entities describe, as SQL; empty unless a migration was forgotten. */
  schemaDifference(): Promise<string>;
  /** Runs one statement outside any transaction, with `$1` parameters; `prepared` is as in `StatementOptions`. */
  query(sql: string, params: unknown[], prepared?: boolean): Promise<Row[]>;
  /**
   * Calls `handler` for each `notify` of the channel by any process, and once after each time the listening connection
   * was lost. Returns what stops it.
   */
  listen(channel: string, handler: (text?: string) => void): Promise<() => Promise<void>>;
  /** The connections to a server, and how many queries wait for one; undefined on the embedded engine. */
  connections(): PoolUse | undefined;
  /** Absent on a server, and in memory. */
  files?: DatabaseFiles;
  close(): Promise<void>;
};

/** The files of an embedded database, to be copied. */
export type DatabaseFiles = {
  folder: string;
  /**
   * Writes what is in memory to the files. `firstSegment` names the oldest file of the log that is needed from now on.
   */
  checkpoint(): Promise<{ waitedMs: number; firstSegment: string }>;
  /** Runs `work` while all statements wait, so that no file changes. `lastSegment` names the log's newest file. */
  hold<T>(work: (lastSegment: string) => Promise<T>): Promise<T>;
};

/** `held`: of those in use, for whose requests. */
type PoolUse = {
  inUse: number;
  idle: number;
  most: number;
  waiting: number;
  held: Record<Holder, number>;
};
