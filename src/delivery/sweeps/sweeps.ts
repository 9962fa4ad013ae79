import { eventTypes } from '../../domain/events/index.ts';
import { newId, smallestIdAt } from '../../domain/ids.ts';
import type { Transaction } from '../../store/database/queries.ts';
import { purgeDeliveries } from '../../store/deliveries.ts';
import { insertEvents, purgeEvents } from '../../store/events.ts';
import { listDeletedForms, removeRowsOfForm } from '../../store/form-removal.ts';
import { listRetentions, removeUnactivatedForms } from '../../store/forms.ts';
import { purgeMailCounts } from '../../store/mail.ts';
import { purgeRateLimits } from '../../store/rate-limits.ts';
import { removeSubmissionsBefore } from '../../store/removals.ts';
import { removeSessionsBefore, takeExpiredSessions } from '../../store/sessions.ts';
import { removeUnclaimedUploads } from '../../store/uploads.ts';
import { purgeDeletedWebhooks } from '../../store/webhooks.ts';
import type { DeliveryOptions } from '../options.ts';
import { createPump } from '../worker/worker-loop.ts';

/**
 * Makes what ends and removes things in the background: sessions that have expired are announced when
 * told, and what has outlived its time goes, in small groups without long locks. Any number of processes
 * may sweep at once.
 *
 * `announce` is called when there are events to deliver.
 */
export function createSweeps(options: SweepOptions, announce: () => void): Sweeps {
  const { log } = options;
  const expiry = createPump('expiry', () => expireSessions(options, announce), log);
  const removal = createPump('removal', () => removeOld(options), log);
  let timer: NodeJS.Timeout | undefined;
  return {
    start() {
      timer = setInterval(removal.wake, REMOVAL_MS);
      removal.wake();
    },
    expire: expiry.wake,
    async stop() {
      clearInterval(timer);
      await Promise.all([expiry.stop(), removal.stop()]);
    },
  };
}

const REMOVAL_MS = 60_000;

/** Rows of one transaction: some milliseconds. */
const GROUP = 100;

/** Between a person's upload and their submission. */
const UNCLAIMED_SECONDS = 3600;

const DAY_MS = 24 * 60 * 60 * 1000;

/** Announces one group of sessions that have ended. True if there may be more. */
export async function expireSessions(
  { database, now }: SweepOptions,
  announce: () => void,
): Promise<boolean> {
  const expired = await database.transaction(async (tx: Transaction) => {
    const sessions = await takeExpiredSessions(tx, GROUP);
    const at = new Date(now());
    await insertEvents(
      tx,
      sessions.map(({ id: sessionId, projectId, formId, expiresAt, metadata, partialAnswers }) => {
        const id = newId('evt', at.getTime());
        const facts = {
          id: sessionId,
          formId,
          expiresAt,
          metadata,
          partialAnswers: partialAnswers ?? undefined,
        };
        const body = eventTypes['session.expired'].body({ id, at }, facts);
        return { id, projectId, formId, sessionId, type: 'session.expired', body, createdAt: at };
      }),
    );
    return sessions.length;
  });
  if (expired > 0) announce();
  return expired === GROUP;
}

/** Removes a group of each thing that is too old. True if there may be more. */
export async function removeOld(options: SweepOptions): Promise<boolean> {
  const { database, settings } = options;
  const counts = [
    await purgeDeliveries(database, settings.retentionDays, GROUP),
    await purgeEvents(database, settings.retentionDays, GROUP),
    await purgeDeletedWebhooks(database, GROUP),
    await removeUnactivatedForms(database, GROUP),
    await purgeMailCounts(database, GROUP),
    await purgeRateLimits(database, GROUP),
    await removeUploads(options, await removeUnclaimedUploads(database, UNCLAIMED_SECONDS, GROUP)),
  ];
  const moreOfDeleted = await removeDeletedForms(options);
  const moreToForget = await keepRetentions(options);
  return moreOfDeleted || moreToForget || counts.some((count) => count >= GROUP);
}

/** Removes what is left of deleted forms, a group of each at a time. True if there may be more. */
async function removeDeletedForms(options: SweepOptions): Promise<boolean> {
  let anyMore = false;
  for (const formId of await listDeletedForms(options.database, GROUP)) {
    const { more, uploadIds } = await removeRowsOfForm(options.database, formId, GROUP);
    await removeUploads(options, uploadIds);
    anyMore ||= more;
  }
  return anyMore;
}

/** Removes a group of each form's submissions and sessions that are older than the form keeps them. */
async function keepRetentions(options: SweepOptions): Promise<boolean> {
  const { database, now } = options;
  let more = false;
  for (let cursor: string | undefined; ; ) {
    const page = await listRetentions(database, { limit: GROUP, cursor });
    for (const { id, retentionDays } of page.items) {
      const before = now() - retentionDays * DAY_MS;
      const { removed, uploadIds } = await database.transaction((tx) =>
        removeSubmissionsBefore(tx, id, smallestIdAt('sub', before), GROUP),
      );
      await removeUploads(options, uploadIds);
      const sessions = await removeSessionsBefore(database, id, new Date(before), GROUP);
      more ||= removed === GROUP || sessions === GROUP;
    }
    if (page.nextCursor === null) return more;
    cursor = page.nextCursor;
  }
}

async function removeUploads({ removeUpload, log }: SweepOptions, ids: string[]): Promise<number> {
  for (const id of ids) {
    await removeUpload?.(id).catch((error: unknown) => {
      log.error({ err: error, upload: id }, 'The bytes of an upload could not be removed.');
    });
  }
  return ids.length;
}

export type Sweeps = {
  start(): void;
  /** Announces the sessions that have ended. */
  expire: () => void;
  stop(): Promise<void>;
};

export type SweepOptions = Pick<DeliveryOptions, 'database' | 'settings' | 'now' | 'log' | 'removeUpload'>;
