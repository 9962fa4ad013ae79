import { type NewEntry, systemEntry } from '../../domain/audit.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import type { Database, Transaction } from '../database/database.ts';
import { DatabaseUnavailable, splitBatch } from '../database/faults.ts';
import { insertEntries } from './audit-log.ts';

/**
 * Makes what writes the audit log. What changes something is stored with the change, which fails without it. What only
 * reads is stored within `WRITE_EVERY_MS`, together with all else that was read; nobody waits for that.
 *
 * While the database is away, up to `MAX_WAITING` reads wait. Those beyond are counted in an entry of their own, and
 * entries that can't be stored are written into the log of the service instead. What is stored is a line of
 * `entryLog`, too, once it is committed.
 */
export function createAuditWriter({
  database,
  now,
  log,
  entryLog,
  metrics,
  maxWaiting = MAX_WAITING,
}: AuditWriterOptions): AuditWriter {
  let waiting = new Map<string, NewEntry>();
  const lost = new Map<string, number>();
  let timer: NodeJS.Timeout | undefined;
  let writing: Promise<void> = Promise.resolve();

  function note(entry: NewEntry): void {
    const key = keyOf(entry);
    const same = waiting.get(key);
    if (same !== undefined) waiting.set(key, { ...same, count: same.count + entry.count });
    else if (waiting.size < maxWaiting) waiting.set(key, entry);
    else {
      lost.set(entry.projectId, (lost.get(entry.projectId) ?? 0) + entry.count);
      metrics?.onAudit('lost', 1);
    }
    timer ??= setTimeout(() => void flush(), WRITE_EVERY_MS);
  }

  function flush(): Promise<void> {
    clearTimeout(timer);
    timer = undefined;
    writing = writing.then(write);
    return writing;
  }

  /** Never rejects. What could not be stored because the database is away waits for the next time. */
  async function write(): Promise<void> {
    const entries = [...waiting.values(), ...lostEntries()];
    waiting = new Map();
    let left: NewEntry[] = [];
    while (entries.length > 0 && left.length === 0) left = await storeBatch(entries.splice(0, BATCH));
    for (const entry of [...left, ...entries]) note(entry);
  }

  /** Returns the entries that wait since the database is away. What it refuses is written into the log. */
  function storeBatch(batch: NewEntry[]): Promise<NewEntry[]> {
    return splitBatch(
      batch,
      storeOrKeep,
      (entry, error) => {
        metrics?.onAudit('failed', 1);
        log.error(
          { err: error, entries: [entry] },
          'Could not write the audit log: these entries are lost to it.',
        );
        return [];
      },
      () => true,
    );
  }

  async function storeOrKeep(part: NewEntry[]): Promise<NewEntry[]> {
    try {
      await database.transaction((tx) => store(tx, ...part));
    } catch (error) {
      if (!(error instanceof DatabaseUnavailable)) throw error;
      metrics?.onAudit('failed', part.length);
      log.error({ err: error, entries: part.length }, 'Could not write the audit log; trying again.');
      return part;
    }
    return [];
  }

  async function store(tx: Transaction, ...entries: NewEntry[]): Promise<void> {
    await insertEntries(tx, entries);
    tx.afterCommit(() => {
      metrics?.onAudit('stored', entries.length);
      for (const entry of entries) entryLog?.info(entry, 'audit');
    });
  }

  /** What did not fit, as entries. */
  function lostEntries(): NewEntry[] {
    const entries = [...lost].map(([projectId, count]) =>
      systemEntry({ projectId, at: now(), action: 'audit.lost', count }),
    );
    lost.clear();
    return entries;
  }

  return {
    store,
    note,
    flush,
    async close() {
      await flush();
      clearTimeout(timer);
      const left = [...waiting.values()];
      if (left.length > 0)
        log.error({ entries: left }, 'Could not write the audit log: these entries are lost to it.');
      waiting.clear();
    },
  };
}

/** What is read again within one write is counted. */
function keyOf({ projectId, actor, action, resource, formId, detail, clientAddress }: NewEntry): string {
  return JSON.stringify([projectId, actor, action, resource, formId, detail, clientAddress]);
}

const WRITE_EVERY_MS = 1_000;

/** Some megabytes. */
const MAX_WAITING = 10_000;

/** Rows of one transaction: some ten milliseconds. */
const BATCH = 500;

export type AuditWriter = {
  /** Stores entries with what they tell of. */
  store(tx: Transaction, ...entries: NewEntry[]): Promise<void>;
  /** Takes an entry that is to be stored soon. */
  note(entry: NewEntry): void;
  /** Stores now what is pending, if the database takes it. */
  flush(): Promise<void>;
  /** Does the same a last time; what can't be stored is written into the log. */
  close(): Promise<void>;
};

export type AuditWriterOptions = {
  database: Pick<Database, 'transaction'>;
  /** Milliseconds since 1970. */
  now: () => number;
  log: Log;
  /** Gets a line of each entry; absent: none. */
  entryLog?: Pick<Log, 'info'>;
  metrics?: Pick<Metrics, 'onAudit'> | undefined;
  /** How many reads may wait to be stored. */
  maxWaiting?: number;
};
