import { AttemptEntity } from '../attempts.ts';
import { AutoresponseEntity } from '../autoresponses.ts';
import { CounterEntity } from '../counters.ts';
import { DeliveryEntity } from '../deliveries.ts';
import { EventEntity } from '../events.ts';
import { FormEntity } from '../forms.ts';
import { KeyEntity } from '../keys.ts';
import { MailQuotaEntity } from '../mail-quotas.ts';
import { MailRecipientEntity } from '../mail-recipients.ts';
import { MailStopEntity } from '../mail-stops.ts';
import { ProjectEntity } from '../projects.ts';
import { RateLimitEntity } from '../rate-limits.ts';
import { SessionEntity } from '../sessions.ts';
import { SubmissionEntity } from '../submissions.ts';
import { UploadEntity } from '../uploads.ts';
import { VersionEntity } from '../versions.ts';
import { WebhookEntity } from '../webhooks.ts';
import { InstallationEntity } from './installation.ts';

/**
 * Every table of the service.
 *
 * There are no foreign keys: rows arrive in groups, and a key check would lock the form's row for each
 * of them. The named queries keep what belongs together in one transaction.
 */
export const entities = [
  ProjectEntity,
  KeyEntity,
  FormEntity,
  VersionEntity,
  CounterEntity,
  SessionEntity,
  SubmissionEntity,
  EventEntity,
  WebhookEntity,
  DeliveryEntity,
  AttemptEntity,
  MailRecipientEntity,
  MailStopEntity,
  MailQuotaEntity,
  AutoresponseEntity,
  UploadEntity,
  RateLimitEntity,
  InstallationEntity,
];
