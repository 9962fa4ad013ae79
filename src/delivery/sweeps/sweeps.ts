import { uncalledEntry } from '../../domain/audit/entry.ts';
import { DAY_MS } from '../../domain/durations.ts';
import { sessionEvent } from '../../domain/events/session-event.ts';
import { smallestIdAt } from '../../domain/ids.ts';
import { removeEntriesBefore } from '../../store/audit/audit-log.ts';
import type { Transaction } from '../../store/database/queries.ts';
import { purgeDeliveries, readClock } from '../../store/deliveries/delivery-removal.ts';
import { insertAnnouncedEvents } from '../../store/deliveries/webhook-deliveries.ts';
import { purgeEvents } from '../../store/events.ts';
import { listDeletedForms, removeRowsOfForm } from '../../store/forms/form-removal.ts';
import { listRetentions, removeUnactivatedForms } from '../../store/forms/forms.ts';
import { purgeIdempotencyKeys } from '../../store/idempotency-keys.ts';
import { purgeMailCounts } from '../../store/mail/mail.ts';
import { purgeOwnerSessions } from '../../store/owners/owner-sessions.ts';
import { purgeRateLimits } from '../../store/rate-limits.ts';
import {
  removeSessionsBefore,
  removeVisitorsSessions,
  takeExpiredSessions,
} from '../../store/sessions/sessions.ts';
import { type Announcement, removeSubmissionsBefore } from '../../store/submissions/submission-removal.ts';
import { removeUnclaimedUploads } from '../../store/uploads.ts';
import { purgeDeletedWebhooks } from '../../store/webhooks/webhooks.ts';
import type { DeliveryOptions } from '../options.ts';
import { createWorkerLoop } from '../worker/worker-loop.ts';
import { createResealing, type ResealingOptions } from './resealing.ts';

/**
 * Makes what expires and removes rows in the background: `expireSessions` stores the events of sessions
 * that have ended, and each minute everything is removed that is older than it may be, in small batches
 * without long locks. After a change of the key, stored secrets are sealed anew. Any number of processes may do
 * so at once.
 *
 * `onDeliveries` is called when there are deliveries to make.
 */
export function createSweeps(options: SweepOptions & ResealingOptions, onDeliveries: () => void): Sweeps {
  const expiry = createWorkerLoop('expiry', () => expireSessions(options, onDeliveries), options);
  const removal = createWorkerLoop('removal', () => removeOld(options), options);
  const resealing = createWorkerLoop('resealing', createResealing(options), options);
  let timer: NodeJS.Timeout | undefined;
  return {
    start() {
      if (options.secrets.hasPrevious) resealing.wake();
      timer = setInterval(removal.wake, REMOVAL_MS);
      removal.wake();
    },
    expireSessions: expiry.wake,
    async stop() {
      clearInterval(timer);
      await Promise.all([expiry.stop(), removal.stop(), resealing.stop()]);
    },
  };
}

const REMOVAL_MS = 60_000;

/** Rows of one transaction: some milliseconds of work. */
const BATCH = 100;

/** How long after an upload a submission can still claim it. */
const UNCLAIMED_SECONDS = 3600;

/** Stores the events of one batch of sessions that have ended, with their deliveries. True if there may be more. */
export async function expireSessions(
  { database, settings, now, onEvents }: SweepOptions,
  onDeliveries: () => void,
): Promise<boolean> {
  const expired = await database.transaction(async (tx: Transaction) => {
    const sessions = await takeExpiredSessions(tx, BATCH);
    const at = now();
    await insertAnnouncedEvents(
      tx,
      'session.expired',
      sessions.map((session) => sessionEvent('session.expired', session, at)),
      settings.schedule,
    );
    return sessions.length;
  });
  if (expired > 0) {
    onDeliveries();
    onEvents?.();
  }
  return expired === BATCH;
}

/** Removes a batch of each kind of row that is too old. True if there may be more. */
export async function removeOld(options: SweepOptions): Promise<boolean> {
  const { database, settings, metrics } = options;
  const before = (await readClock(database)).getTime() - settings.retentionDays * DAY_MS;
  const auditBefore = new Date(options.now() - settings.auditRetentionDays * DAY_MS);
  const counts = {
    deliveries: await purgeDeliveries(database, before, BATCH),
    events: await purgeEvents(database, before, BATCH),
    webhooks: await purgeDeletedWebhooks(database, BATCH),
    unactivated_forms: await removeDrafts(options),
    mail_counts: await purgeMailCounts(database, BATCH),
    rate_limits: await purgeRateLimits(database, BATCH),
    idempotency_keys: await purgeIdempotencyKeys(database, BATCH),
    visitors_sessions: await removeVisitorsSessions(database, BATCH),
    owner_sessions: await purgeOwnerSessions(database, BATCH),
    audit_entries: await removeEntriesBefore(database, auditBefore, BATCH),
    uploads: await removeUploads(options, await removeUnclaimedUploads(database, UNCLAIMED_SECONDS, BATCH)),
  };
  for (const [kind, count] of Object.entries(counts)) metrics?.onRemoved(kind, count);
  const moreOfDeleted = await removeDeletedForms(options);
  const moreRetained = await enforceRetention(options);
  return moreOfDeleted || moreRetained || Object.values(counts).some((count) => count >= BATCH);
}

/** Removes a batch of the drafts that nobody has activated. Returns how many. */
async function removeDrafts({ database, auditWriter, now }: SweepOptions): Promise<number> {
  const removed = await removeUnactivatedForms(database, BATCH);
  for (const { id, projectId } of removed)
    auditWriter.note(uncalledEntry({ projectId, at: now(), action: 'form.removed', formId: id }));
  return removed.length;
}

/** Removes what is left of deleted forms, a batch of each at a time. True if there may be more. */
async function removeDeletedForms(options: SweepOptions): Promise<boolean> {
  let anyMore = false;
  for (const formId of await listDeletedForms(options.database, BATCH)) {
    const { more, uploadIds } = await removeRowsOfForm(
      options.database,
      { formId, limit: BATCH },
      announcementOf(options),
    );
    await removeUploads(options, uploadIds);
    anyMore ||= more;
  }
  return anyMore;
}

/** Removes a batch of each form's submissions and sessions that are older than its retention time. */
async function enforceRetention(options: SweepOptions): Promise<boolean> {
  const { database, auditWriter, now, metrics } = options;
  let more = false;
  for (let cursor: string | undefined; ; ) {
    const page = await listRetentions(database, { limit: BATCH, cursor });
    for (const { id, projectId, retentionDays } of page.items) {
      const before = now() - retentionDays * DAY_MS;
      const about = { projectId, at: now(), formId: id };
      const { removed, uploadIds } = await database.transaction(async (tx) => {
        const range = { formId: id, beforeId: smallestIdAt('sub', before), limit: BATCH };
        const old = await removeSubmissionsBefore(tx, range, announcementOf(options));
        const count = old.removed;
        if (count > 0)
          await auditWriter.store(tx, uncalledEntry({ ...about, action: 'submission.removed', count }));
        return old;
      });
      await removeUploads(options, uploadIds);
      const sessions = await removeSessionsBefore(database, id, new Date(before), BATCH);
      if (sessions > 0)
        auditWriter.note(uncalledEntry({ ...about, action: 'session.removed', count: sessions }));
      metrics?.onRemoved('submissions', removed);
      metrics?.onRemoved('sessions', sessions);
      more ||= removed === BATCH || sessions === BATCH;
    }
    if (page.nextCursor === null) return more;
    cursor = page.nextCursor;
  }
}

function announcementOf({ settings, now }: SweepOptions): Announcement {
  return { at: now(), schedule: settings.schedule };
}

async function removeUploads({ removeUpload, log }: SweepOptions, ids: string[]): Promise<number> {
  for (const id of ids) {
    await removeUpload?.(id).catch((error: unknown) => {
      log.error(
        { err: error, upload: id },
        'Could not remove the bytes of an upload; they stay in the upload store.',
      );
    });
  }
  return ids.length;
}

export type Sweeps = {
  start(): void;
  expireSessions: () => void;
  stop(): Promise<void>;
};

export type SweepOptions = Pick<
  DeliveryOptions,
  'database' | 'auditWriter' | 'settings' | 'now' | 'log' | 'removeUpload' | 'onEvents' | 'metrics'
>;
