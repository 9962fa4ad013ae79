import type { SMTPPoolOptions } from 'nodemailer';
import type { buildConnector } from 'undici';
import type { SecretBox, SecretKey } from '../domain/secrets/secret-key.ts';
import type { AuditWriter } from '../store/audit/audit-writer.ts';
import type { Database } from '../store/database/database.ts';
import type { DayWindow } from '../store/database/vacuum.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { Tracing } from '../telemetry/tracing.ts';
import type { ResolveHost } from './webhook/connector.ts';

/** What delivery needs from the process that runs it. */
export type DeliveryOptions = {
  database: Database;
  /** Records what delivery does by itself. */
  auditWriter: Pick<AuditWriter, 'store' | 'note'>;
  /** Opens the webhooks' secrets. */
  secrets: SecretBox;
  /** Signs the links in emails. */
  secretKey: SecretKey;
  settings: DeliverySettings;
  /** Milliseconds since 1970. */
  now: () => number;
  /** A number in [0, 1). */
  random: () => number;
  log: Log;
  /** Removes the bytes of an upload, and does nothing if there are none; absent: this process has no upload store. */
  removeUpload?: (uploadId: string) => Promise<void>;
  /** Called when this process has committed events; absent: nobody wants to know. */
  onEvents?: () => void;
  /** How the hosts of webhooks are found; absent: the system's name servers. */
  resolveHost?: ResolveHost;
  /** How connections to webhooks are opened, by an address that was checked; absent: as undici does. */
  openConnector?: typeof buildConnector;
  /** How connections to the mail server are opened; absent: to its addresses. */
  openMailSocket?: NonNullable<SMTPPoolOptions['getSocket']>;
  /** How long the steps of a dialogue with the mail server may take, in milliseconds; absent: `standardTimes`. */
  smtpTimes?: Record<'connecting' | 'network' | 'server' | 'message', number>;
  /** How often the leases of emails under way are renewed; absent: `RENEW_EVERY_MS`. */
  renewEveryMs?: number;
  metrics?: Metrics | undefined;
  tracing?: Tracing | undefined;
};

/** The part of the configuration that delivery reads. */
export type DeliverySettings = {
  /** Seconds before each attempt, the first before the first one. */
  schedule: readonly number[];
  /** The most deliveries under way at once in this process; 0 turns delivery off. */
  concurrency: number;
  /** Lifts the rule that webhooks go to public addresses only. */
  allowPrivate: boolean;
  /** The address of the service, without a slash at the end. */
  baseUrl: string;
  /** The address of the pages, without a slash at the end. */
  hostedUrl: string;
  mailFrom: string;
  /** How many mailboxes that have not confirmed anything a key may have emailed in a day. */
  notifyMailboxesPerKey: number;
  /** False: owners get emails of their forms in full before their addresses have confirmed. */
  ownerConfirmation: boolean;
  /** Who gets what is posted to the demo form; absent: `mailFrom`. */
  operatorEmail?: string | undefined;
  /** Absent: emails are written to `mailDir`. */
  smtpUrl?: string | undefined;
  mailDir: string;
  /** How long finished deliveries and events are kept. */
  retentionDays: number;
  /** How long entries of the audit log are kept. */
  auditRetentionDays: number;
  /** When the embedded database may pause for long; absent: at no time of day by itself. */
  vacuumWindow?: DayWindow;
};
