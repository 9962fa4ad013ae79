import { AuditChainEntity, AuditEntryEntity } from '../audit-log.ts';
import { AttemptEntity, DeliveryEntity } from '../deliveries.ts';
import { QueuedDeliveryEntity } from '../delivery-queue-table.ts';
import { EventEntity } from '../events.ts';
import { FormEntity } from '../forms.ts';
import { IdempotencyKeyEntity } from '../idempotency-keys.ts';
import { InstallationEntity } from '../installation.ts';
import { KeyEntity, RevokedKeyEntity } from '../keys.ts';
import { AutoresponseEntity, MailAllowanceEntity, MailRecipientEntity, MailStopEntity } from '../mail.ts';
import { OwnerSessionEntity, UsedSignInLinkEntity } from '../owner-sessions.ts';
import { ProjectEntity } from '../projects.ts';
import { RateLimitEntity } from '../rate-limits.ts';
import { SessionEntity } from '../session-table.ts';
import { CounterEntity, SubmissionEntity } from '../submissions.ts';
import { UploadEntity } from '../uploads.ts';
import { VersionEntity } from '../versions.ts';
import { WebhookEntity } from '../webhooks.ts';

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
  AutoresponseEntity,
  UploadEntity,
  RateLimitEntity,
  InstallationEntity,
  IdempotencyKeyEntity,
  OwnerSessionEntity,
  UsedSignInLinkEntity,
  AuditChainEntity,
  AuditEntryEntity,
];
