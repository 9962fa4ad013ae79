import { AuditChainEntity, AuditEntryEntity } from '../audit/audit-table.ts';
import { AttemptEntity, DeliveryEntity } from '../deliveries/deliveries.ts';
import { QueuedDeliveryEntity } from '../deliveries/delivery-queue-table.ts';
import { EventEntity } from '../events.ts';
import { FormEntity } from '../forms/forms.ts';
import { VersionEntity } from '../forms/versions.ts';
import { IdempotencyKeyEntity } from '../idempotency-keys.ts';
import { InstallationEntity } from '../installation.ts';
import { KeyEntity, RevokedKeyEntity } from '../keys.ts';
import {
  AutoresponseEntity,
  MailAllowanceEntity,
  MailRecipientEntity,
  MailStopEntity,
} from '../mail/mail.ts';
import { OwnerSessionEntity, UsedSignInLinkEntity } from '../owners/owner-sessions.ts';
import { ProjectEntity } from '../projects/projects.ts';
import { RateLimitEntity } from '../rate-limits.ts';
import { SessionEntity } from '../sessions/session-table.ts';
import { CounterEntity, SubmissionEntity } from '../submissions/submissions.ts';
import { UploadEntity } from '../uploads.ts';
import { WebhookEntity } from '../webhooks/webhooks.ts';

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
