import { systemEntry } from '../../domain/audit.ts';
import { DAY_MS } from '../../domain/limits/limits.ts';
import { removeEntriesBefore } from '../../store/audit/audit-log.ts';
import type { Transaction } from '../../store/database/queries.ts';
import { isWithin, rewriteErased, vacuumTables } from '../../store/database/vacuum.ts';
import { announceEnds } from '../../store/deliveries/enqueue.ts';
import { purgeDeliveries } from '../../store/deliveries/remove.ts';
import { purgeEvents } from '../../store/events.ts';
import { listDeletedForms, removeRowsOfForm } from '../../store/forms/form-removal.ts';
import { removeUnactivatedForms } from '../../store/forms/forms.ts';
import { removeIdleQuestions } from '../../store/forms/questions.ts';
import { removeDueFiles, removeOutdated } from '../../store/removal/removals.ts';
import { resealGroup, resealKeyCheck, sealedTables } from '../../store/sealed-secrets.ts';
import { removeExpiredSessions, removeVisitorsSessions } from '../../store/sessions/session-removal.ts';
import { takeExpiredSessions } from '../../store/sessions/sessions.ts';
import {
  type Announcement,
  findExpiredSubmissions,
  type RemovedOfForm,
  removeFoundSubmissions,
} from '../../store/submissions/submission-removal.ts';
import { removeUnclaimedUploads } from '../../store/uploads.ts';
import { purgeCallbackOrigins, purgeDeletedWebhooks } from '../../store/webhooks/webhooks.ts';
import type { DeliveryOptions } from '../options.ts';
import { createWorkerLoop } from '../worker/worker-loop.ts';

/**
 * Makes what expires and removes rows in the background: `expireSessions` stores the events of sessions
 * that have ended, `removeFiles` removes the bytes of files whose rows are gone, and each minute everything is removed
 * that is older than it may be, in small batches without long locks. After a change of the key, stored secrets are
 * sealed anew. Any number of processes may do so at once.
 *
 * `onDeliveries` is called when there are deliveries to make.
 */
export function createSweeps(options: SweepOptions & ResealingOptions, onDeliveries: () => void): Sweeps {
  const expiry = createWorkerLoop('expiry', () => expireSessions(options, onDeliveries), options);
  const removal = createWorkerLoop('removal', () => removeOld(options), options);
  const fileRemoval = createWorkerLoop('file removal', () => removeFiles(options), options);
  const vacuum = createWorkerLoop('vacuum', () => tidyEmbedded(options), options);
  const resealing = createWorkerLoop('resealing', createResealing(options), options);
  let timer: NodeJS.Timeout | undefined;
  return {
    start() {
      if (options.secrets.hasPrevious) resealing.wake();
      timer = setInterval(() => {
        removal.wake();
        vacuum.wake();
      }, REMOVAL_MS);
      removal.wake();
    },
    expireSessions: expiry.wake,
    removeFiles: fileRemoval.wake,
    async stop() {
      clearInterval(timer);
      await Promise.all([expiry.stop(), removal.stop(), fileRemoval.stop(), vacuum.stop(), resealing.stop()]);
    },
  };
}

const REMOVAL_MS = 60_000;

/** Rows of one transaction: some milliseconds of work. */
const BATCH = 100;

/** A second or a few, while much is too old. */
const RETENTION_BATCHES = 10;

/** How long after an upload a submission can still claim it. */
const UNCLAIMED_SECONDS = 3600;

/** Stores the events of one batch of sessions that have ended, with their deliveries. True if there may be more. */
export async function expireSessions(
  { database, settings, now, onEvents }: SweepOptions,
  onDeliveries: () => void,
): Promise<boolean> {
  const expired = await database.transaction(async (tx: Transaction) => {
    const sessions = await takeExpiredSessions(tx, BATCH);
    await announceEnds(tx, 'session.expired', sessions, { at: now(), schedule: settings.schedule });
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
  const before = (await database.now()).getTime() - settings.retentionDays * DAY_MS;
  const auditBefore = new Date(options.now() - settings.auditRetentionDays * DAY_MS);
  const counts = {
    deliveries: await purgeDeliveries(database, before, BATCH),
    events: await purgeEvents(database, before, BATCH),
    webhooks: await purgeDeletedWebhooks(database, BATCH),
    callback_origins: await purgeCallbackOrigins(database, new Date(before), BATCH),
    unactivated_forms: await removeDrafts(options),
    hidden_forms: await removeQuestions(options),
    ...(await removeOutdated(database, BATCH)),
    visitors_sessions: await removeVisitorsSessions(database, BATCH),
    audit_entries: await removeEntriesBefore(database, auditBefore, BATCH),
    uploads: await removeUnclaimedUploads(database, UNCLAIMED_SECONDS, BATCH),
  };
  for (const [kind, count] of Object.entries(counts)) metrics?.onRemoved(kind, count);
  const moreOfDeleted = await removeDeletedForms(options);
  const moreRetained = await enforceRetention(options);
  return moreOfDeleted || moreRetained || Object.values(counts).some((count) => count >= BATCH);
}

/** Vacuums an embedded database, and in its window writes anew what held what was erased. */
export async function tidyEmbedded({ database, settings, now, log }: SweepOptions): Promise<boolean> {
  if (database.engine !== 'pglite') return false;
  const { vacuumWindow } = settings;
  const isQuiet = vacuumWindow !== undefined && isWithin(vacuumWindow, now());
  await vacuumTables(database, { isQuiet, log });
  if (isQuiet) await rewriteErased(database, { log });
  return false;
}

/** Removes a batch of the drafts that nobody has activated. Returns how many. */
async function removeDrafts(options: SweepOptions): Promise<number> {
  const removed = await removeUnactivatedForms(options.database, BATCH);
  noteRemoved(options, removed);
  return removed.length;
}

/** Deletes a batch of the hidden forms that nobody asks any more. Returns how many were looked at. */
async function removeQuestions(options: SweepOptions): Promise<number> {
  const { looked, deleted } = await removeIdleQuestions(options.database, BATCH);
  noteRemoved(options, deleted);
  return looked;
}

function noteRemoved({ auditWriter, now }: SweepOptions, forms: { id: string; projectId: string }[]): void {
  for (const { id, projectId } of forms)
    auditWriter.note(systemEntry({ projectId, at: now(), action: 'form.removed', formId: id }));
}

/** Removes what is left of deleted forms, a batch of each at a time. True if there may be more. */
async function removeDeletedForms(options: SweepOptions): Promise<boolean> {
  let anyMore = false;
  for (const formId of await listDeletedForms(options.database, BATCH)) {
    const wanted = { formId, limit: BATCH };
    if (await removeRowsOfForm(options.database, wanted, announcementOf(options))) anyMore = true;
  }
  return anyMore;
}

/**
 * Removes the submissions and sessions that are older than their forms keep them, some batches before other kinds of
 * rows have their turn. True if there may be more.
 */
async function enforceRetention(options: SweepOptions): Promise<boolean> {
  const { database, auditWriter, now, metrics } = options;
  for (let batch = 0; batch < RETENTION_BATCHES; batch += 1) {
    const old = await findExpiredSubmissions(database, BATCH);
    if (old.ids.length > 0) {
      const removed = await database.transaction(async (tx) => {
        const forms = await removeFoundSubmissions(tx, old.ids, announcementOf(options));
        const entries = forms.map((form) => removalEntry(form, 'submission.removed', now()));
        if (entries.length > 0) await auditWriter.store(tx, ...entries);
        return forms.reduce((sum, { count }) => sum + count, 0);
      });
      metrics?.onRemoved('submissions', removed);
    }
    const ofForms = await removeExpiredSessions(database, BATCH);
    for (const form of ofForms) auditWriter.note(removalEntry(form, 'session.removed', now()));
    const sessions = ofForms.reduce((sum, { count }) => sum + count, 0);
    metrics?.onRemoved('sessions', sessions);
    metrics?.onRetention(old.lateMs / 1000);
    if (old.ids.length < BATCH && sessions < BATCH) return false;
  }
  return true;
}

/** Removes a batch of the files whose rows are gone. True if there may be more. */
export async function removeFiles({
  database,
  removeUpload,
  log,
  metrics,
}: Pick<SweepOptions, 'database' | 'removeUpload' | 'log' | 'metrics'>): Promise<boolean> {
  if (removeUpload === undefined) return false;
  const { removed, failed, more } = await removeDueFiles(database, removeUpload, AT_ONCE);
  metrics?.onRemoved('files', removed);
  for (const { uploadId, error } of failed) {
    log.warn({ err: error, upload: uploadId }, 'Could not remove the bytes of an upload; it is tried again.');
  }
  return more;
}

/** Calls of the upload store at once. */
const AT_ONCE = 16;

function removalEntry(
  { formId, projectId, count }: RemovedOfForm,
  action: 'submission.removed' | 'session.removed',
  at: number,
) {
  return systemEntry({ projectId, at, formId, action, count });
}

function announcementOf({ settings, now }: SweepOptions): Announcement {
  return { at: now(), schedule: settings.schedule };
}

export type Sweeps = {
  start(): void;
  expireSessions: () => void;
  removeFiles: () => void;
  stop(): Promise<void>;
};

export type SweepOptions = Pick<
  DeliveryOptions,
  'database' | 'auditWriter' | 'settings' | 'now' | 'removeUpload' | 'log' | 'onEvents' | 'metrics'
>;

/**
 * Makes the work that seals all stored secrets anew after SECRET_KEY was changed, a group a run. A run returns
 * whether there is more; at the end it is logged that SECRET_KEY_PREVIOUS may go.
 */
export function createResealing({ database, secrets, log }: ResealingOptions): () => Promise<boolean> {
  const tables = [...sealedTables];
  let after = '';
  let resealed = 0;
  let unreadable = 0;

  return async () => {
    const [table] = tables;
    if (table === undefined) return false;
    const group = await database.transaction((tx) =>
      resealGroup(tx, secrets, { table, after, limit: GROUP }),
    );
    resealed += group.resealed;
    unreadable += group.unreadable;
    after = group.next ?? '';
    if (group.next !== null) return true;
    tables.shift();
    if (tables.length > 0) return true;

    await resealKeyCheck(database, secrets);
    if (unreadable > 0) {
      log.error(
        { unreadable },
        "Some stored secrets open with neither SECRET_KEY nor SECRET_KEY_PREVIOUS; their webhooks can't be signed.",
      );
    }
    log.info(
      { resealed },
      'All stored secrets are sealed with SECRET_KEY. SECRET_KEY_PREVIOUS is needed only for links in emails.',
    );
    return false;
  };
}

/** Rows of one transaction: some milliseconds of work. */
const GROUP = 200;

type ResealingOptions = Pick<DeliveryOptions, 'database' | 'secrets' | 'log'>;
