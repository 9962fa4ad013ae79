import { setTimeout as sleep } from 'node:timers/promises';
import type { Admission } from './admission/admission.ts';
import type { Config } from './config.ts';
import type { ServiceOptions } from './services/context.ts';
import type { Services } from './services/index.ts';
import type { DiskSpaceWatch } from './services/limits/disk-space.ts';
import type { Database } from './store/database/database.ts';
import { readQueueState } from './store/deliveries/due.ts';
import { readRemovalState } from './store/removal/removals.ts';
import type { SubmissionWriter } from './store/submissions/submission-writer.ts';
import type { Metrics } from './telemetry/metrics.ts';

/** Registers what is read when metrics are asked for: how much there is of something now, and of how much. */
export function registerGauges(metrics: Metrics, parts: GaugeParts): void {
  const { database, writer, admission, disk, api, config, logOutput } = parts;
  const { count, gauge, gauges } = metrics;

  const limit = database.engine === 'pglite' ? 10_000 : 100_000;
  const queue = createReader(() => readQueueState(database, limit));
  gauge('forms_database_up', 'Whether the database answers within 2 s.', async () =>
    (await queue()) ? 1 : 0,
  );
  gauge(
    'forms_queue_due',
    'Deliveries that are due or under way, up to 10,000 on the embedded database and 100,000 on a server.',
    async () => (await queue())?.due,
  );
  gauge(
    'forms_queue_later',
    'Deliveries that wait for a later time, up to as many.',
    async () => (await queue())?.later,
  );
  gauge(
    'forms_queue_oldest_due_age_seconds',
    'For how long the first delivery waits that is due and that no process has claimed.',
    async () => {
      const state = await queue();
      return state && state.oldestAgeMs / 1000;
    },
  );

  const removals = createReader(() => readRemovalState(database));
  gauge(
    'forms_removals_waiting',
    'Files that are still to be removed, since their rows are gone, up to 10,000.',
    async () => (await removals())?.waiting,
  );
  gauge(
    'forms_removals_failing',
    'Those of them whose last attempt failed.',
    async () => (await removals())?.failing,
  );

  gauge('forms_writer_waiting_rows', 'Submissions that wait to be stored.', () => writer.waiting().rows);
  gauge('forms_writer_waiting_rows_limit', 'The most that may wait.', () => writer.waiting().maxRows);
  gauge('forms_writer_waiting_bytes', 'Their JSON, in UTF-16 units.', () => writer.waiting().bytes);
  gauge('forms_writer_waiting_bytes_limit', 'The most that may wait.', () => writer.waiting().maxBytes);

  if (database.connections() !== undefined) {
    gauges('forms_database_connections', 'Connections to the database.', 'state', () => {
      const { inUse = 0, idle = 0 } = database.connections() ?? {};
      return { in_use: inUse, idle };
    });
    gauges(
      'forms_database_connections_held',
      'Connections in use for requests.',
      'by',
      () => database.connections()?.held ?? {},
    );
    const of = (name: 'most' | 'waiting') => () => database.connections()?.[name];
    gauge('forms_database_connections_limit', 'The most connections to the database.', of('most'));
    gauge('forms_database_waiting', 'Queries that wait for a connection.', of('waiting'));
  }

  gauge('forms_connections', 'Connections of clients that are open.', () => admission.connections());
  gauge('forms_connections_limit', 'MAX_CONNECTIONS.', () => config.maxConnections);
  const bodies = (amount: 'held' | 'most') => () => {
    const { keyless, key } = admission.heldBodies();
    return { keyless: keyless[amount], key: key[amount] };
  };
  const byCaller = 'Bodies that are held, by what their callers have shown.';
  gauges('forms_body_bytes', byCaller, 'caller', bodies('held'));
  gauges('forms_body_bytes_limit', 'The most that are held.', 'caller', bodies('most'));
  gauge('forms_streams', 'Streams of events and submissions that are open.', () => api.streams.open());
  gauge('forms_streams_limit', 'MAX_STREAMS_TOTAL.', () => config.maxStreamsTotal);
  gauge('forms_waits', 'Calls that wait for sessions.', () => api.waits.open());
  gauge('forms_waits_limit', 'MAX_WAITS_TOTAL.', () => config.maxWaitsTotal);
  gauge('forms_disk_free_bytes', 'Free space on the disk of DATA_DIR.', () => disk.freeBytes());
  gauge('forms_disk_low', 'Whether new data is refused because of it.', () => (disk.isLow() ? 1 : 0));
  count(
    'forms_log_lines_dropped_total',
    'Lines of the log that could not be written.',
    () => logOutput?.dropped ?? 0,
  );
}

/** Reads the database at most once in a few seconds; undefined if it does not answer in time. */
function createReader<T>(read: () => Promise<T>): () => Promise<T | undefined> {
  let readAt = Number.NEGATIVE_INFINITY;
  let reading: Promise<T | undefined> = Promise.resolve(undefined);
  return () => {
    if (performance.now() - readAt >= FRESH_MS) {
      readAt = performance.now();
      const late = sleep(DATABASE_MS, undefined, { ref: false });
      reading = Promise.race([read().catch(() => undefined), late]);
    }
    return reading;
  };
}

/** Several gauges come from one reading, and several scrapers may ask. */
const FRESH_MS = 2_000;

/** Prometheus waits for 10 s, and the other metrics are wanted most when the database is away. */
const DATABASE_MS = 2_000;

type GaugeParts = {
  database: Database;
  writer: SubmissionWriter;
  admission: Pick<Admission, 'connections' | 'heldBodies'>;
  disk: DiskSpaceWatch;
  logOutput: ServiceOptions['logOutput'];
  api: Pick<Services, 'streams' | 'waits'>;
  config: Pick<Config, 'maxConnections' | 'maxStreamsTotal' | 'maxWaitsTotal'>;
};
