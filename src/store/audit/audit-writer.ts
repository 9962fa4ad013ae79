import { type NewEntry, systemEntry } from '../../domain/audit.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import type { Database, Transaction } from '../database/database.ts';
import { DatabaseUnavailable, splitBatch } from '../database/faults.ts';
import { insertEntries } from './audit-log.ts';

/**
 * Writes the audit log. What changes something is stored with the change, which fails without it. What only reads is
 * stored within `WRITE_EVERY_MS`, together with all else that was read; nobody waits for that.
 *
 * While the database is away, up to `MAX_WAITING` reads wait. Those beyond are counted in an entry of their own, and
 * entries that can't be stored are written into the log of the service instead. What is stored is a line of
 * `entryLog`, too, once it is committed.
 */
export class AuditWriter {
  readonly #options: AuditWriterOptions;
  /** Entries that are to be stored, by what they have in common: added by `note`, taken by `#write`. */
  #waiting = new Map<string, NewEntry>();
  /** How many reads did not fit, by project: counted by `note`, taken by `#write`. */
  readonly #lost = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;
  /** One write after the other. */
  #writing: Promise<void> = Promise.resolve();

  constructor(options: AuditWriterOptions) {
    this.#options = options;
  }

  /** Stores entries with what they tell of. */
  async store(tx: Transaction, ...entries: NewEntry[]): Promise<void> {
    const { metrics, entryLog } = this.#options;
    await insertEntries(tx, entries);
    tx.afterCommit(() => {
      metrics?.onAudit('stored', entries.length);
      for (const entry of entries) entryLog?.info(entry, 'audit');
    });
  }

  /** Takes an entry that is to be stored soon. */
  note(entry: NewEntry): void {
    const { maxWaiting = MAX_WAITING, metrics } = this.#options;
    const key = keyOf(entry);
    const same = this.#waiting.get(key);
    if (same !== undefined) this.#waiting.set(key, { ...same, count: same.count + entry.count });
    else if (this.#waiting.size < maxWaiting) this.#waiting.set(key, entry);
    else {
      this.#lost.set(entry.projectId, (this.#lost.get(entry.projectId) ?? 0) + entry.count);
      metrics?.onAudit('lost', 1);
    }
    this.#timer ??= setTimeout(() => void this.flush(), WRITE_EVERY_MS);
  }

  /** Stores now what is pending, if the database takes it. */
  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#writing = this.#writing.then(() => this.#write());
    return this.#writing;
  }

  /** Does the same a last time; what can't be stored is written into the log. */
  async close(): Promise<void> {
    await this.flush();
    clearTimeout(this.#timer);
    const left = [...this.#waiting.values()];
    if (left.length > 0) this.#options.log.error({ entries: left }, LOST);
    this.#waiting.clear();
  }

  /** Never rejects. What could not be stored because the database is away waits for the next time. */
  async #write(): Promise<void> {
    const entries = [...this.#waiting.values(), ...this.#lostEntries()];
    this.#waiting = new Map();
    let left: NewEntry[] = [];
    while (entries.length > 0 && left.length === 0) left = await this.#storeBatch(entries.splice(0, BATCH));
    for (const entry of [...left, ...entries]) this.note(entry);
  }

  /** Returns the entries that wait since the database is away. What it refuses is written into the log. */
  #storeBatch(batch: NewEntry[]): Promise<NewEntry[]> {
    const refused = (entry: NewEntry, error: unknown) => {
      this.#options.metrics?.onAudit('failed', 1);
      this.#options.log.error({ err: error, entries: [entry] }, LOST);
      return [];
    };
    const store = (part: NewEntry[]) => this.#storeOrKeep(part);
    return splitBatch(batch, store, refused, () => true);
  }

  async #storeOrKeep(part: NewEntry[]): Promise<NewEntry[]> {
    const { database, metrics, log } = this.#options;
    try {
      await database.transaction((tx) => this.store(tx, ...part));
    } catch (error) {
      if (!(error instanceof DatabaseUnavailable)) throw error;
      metrics?.onAudit('failed', part.length);
      log.error({ err: error, entries: part.length }, 'Could not write the audit log; trying again.');
      return part;
    }
    return [];
  }

  /** What did not fit, as entries. */
  #lostEntries(): NewEntry[] {
    const at = this.#options.now();
    const entries = [...this.#lost].map(([projectId, count]) =>
      systemEntry({ projectId, at, action: 'audit.lost', count }),
    );
    this.#lost.clear();
    return entries;
  }
}

const LOST = 'Could not write the audit log: these entries are lost to it.';

/** What is read again within one write is counted. */
function keyOf({ projectId, actor, action, resource, formId, detail, clientAddress }: NewEntry): string {
  return JSON.stringify([projectId, actor, action, resource, formId, detail, clientAddress]);
}

const WRITE_EVERY_MS = 1_000;

/** Some megabytes. */
const MAX_WAITING = 10_000;

/** Rows of one transaction: some ten milliseconds. */
const BATCH = 500;

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
