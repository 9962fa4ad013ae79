import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

/**
 * Makes the metrics of one process, for Prometheus: their names, and what records them. docs/metrics.md says what
 * each means.
 *
 * Every label has few values, which this service chooses: route patterns, reasons, kinds; never ids, paths or what
 * callers send.
 */
export function createMetrics({ version, database }: BuildFacts) {
  const registry = new Registry();
  const registers = [registry];
  // Every ten milliseconds, the default, keeps an idle process at six times the work.
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 100 });
  // Gauges named as counters. The metric of each type beside them says the same.
  for (const what of ['handles', 'requests', 'resources'])
    registry.removeSingleMetric(`nodejs_active_${what}_total`);

  const counter = <L extends string>(name: string, help: string, labelNames: readonly L[]) =>
    new Counter({ name, help, labelNames, registers });
  const histogram = <L extends string>(
    name: string,
    help: string,
    labelNames: readonly L[],
    buckets: number[],
  ) => new Histogram({ name, help, labelNames, buckets, registers });

  new Gauge({
    name: 'forms_build_info',
    help: 'What runs; always 1.',
    labelNames: ['version', 'node', 'database'],
    registers,
  }).set({ version, node: process.version, database }, 1);

  const requests = histogram(
    'forms_request_duration_seconds',
    'Requests by route pattern or RPC, until the answer has ended.',
    ['route', 'method', 'status'],
    SECONDS,
  );
  const refusals = counter('forms_refusals_total', 'Requests that were refused or failed, by reason.', [
    'route',
    'reason',
  ]);
  const limits = counter('forms_limit_refusals_total', 'What a budget of this process left no room for.', [
    'limit',
  ]);
  const accepted = counter('forms_submissions_accepted_total', 'Submissions that were stored.', ['status']);
  const batches = histogram(
    'forms_batch_size',
    'Rows that were written, or claimed, by one statement.',
    ['batch'],
    ROWS,
  );
  const attempts = counter('forms_delivery_attempts_total', 'What came of claimed deliveries.', [
    'channel',
    'outcome',
  ]);
  const attemptTimes = histogram(
    'forms_delivery_attempt_duration_seconds',
    'Calls of receivers, until the answer or the failure.',
    ['channel'],
    SECONDS,
  );
  const mails = counter('forms_mails_total', 'Results of emails, by their kind.', ['kind', 'outcome']);
  const turnedOff = counter('forms_webhooks_turned_off_total', 'Webhooks turned off by the service.', [
    'cause',
  ]);
  const breakers = counter('forms_circuit_breaker_changes_total', 'Circuit breakers of webhooks.', [
    'change',
  ]);
  const removed = counter('forms_removed_rows_total', 'Rows removed because of their age.', ['kind']);
  const retention = new Gauge({
    name: 'forms_retention_lag_seconds',
    help: 'How long ago the first of the submissions last removed for their age should have been; 0 if none was late.',
    registers,
  });
  const audit = counter('forms_audit_entries_total', 'What came of entries of the audit log.', ['outcome']);
  const failures = counter('forms_work_failures_total', 'Runs of background work that failed.', ['work']);
  const successes = new Gauge({
    name: 'forms_work_last_success_timestamp_seconds',
    help: 'When background work last ran without failing.',
    labelNames: ['work'],
    registers,
  });

  // A series that begins with its first event would hide that event from rates.
  for (const channel of ['webhook', 'mail'])
    for (const outcome of OUTCOMES) attempts.inc({ channel, outcome }, 0);
  for (const limit of LIMITS) limits.inc({ limit }, 0);
  for (const cause of ['gone', 'too_long', 'never_worked']) turnedOff.inc({ cause }, 0);
  for (const change of ['opened', 'closed']) breakers.inc({ change }, 0);
  for (const outcome of ['stored', 'failed', 'lost']) audit.inc({ outcome }, 0);
  for (const status of ['accepted', 'spam']) accepted.inc({ status }, 0);

  return {
    contentType: registry.contentType,
    /** All of them, as Prometheus reads them. */
    text: () => registry.metrics(),
    /** Registers a count that is read when it is asked for. */
    count: (name: string, help: string, read: () => number): void => {
      new Counter({
        name,
        help,
        registers,
        collect() {
          this.reset();
          this.inc(read());
        },
      });
    },
    /** Registers a value that is read when it is asked for; undefined: there is none now. */
    gauge: (name: string, help: string, read: () => Reading | Promise<Reading>): void => {
      new Gauge({
        name,
        help,
        registers,
        async collect() {
          const value = await read();
          if (value === undefined) this.remove();
          else this.set(value);
        },
      });
    },
    /** The same of several, by the value of a label. */
    gauges: (name: string, help: string, label: string, read: () => Record<string, number>): void => {
      new Gauge({
        name,
        help,
        labelNames: [label],
        registers,
        collect() {
          for (const [value, amount] of Object.entries(read())) this.labels(value).set(amount);
        },
      });
    },
    onRequest({ route = 'none', method, status, code, reason, ms }: FinishedRequest): void {
      const known = METHODS.has(method ?? '') ? (method ?? '') : 'other';
      requests.observe({ route, method: known, status: code ?? String(status ?? 'aborted') }, ms / 1000);
      if (reason !== undefined) refusals.inc({ route, reason });
    },
    onLimit: (limit: string) => limits.inc({ limit }),
    onAccepted(status: 'accepted' | 'spam', count: number): void {
      if (count > 0) accepted.inc({ status }, count);
    },
    onBatch: (batch: 'submissions' | 'claims' | 'results', size: number) => batches.observe({ batch }, size),
    onAttempt({ channel, kind, outcome, seconds }: FinishedAttempt): void {
      attempts.inc({ channel, outcome });
      if (channel === 'mail') mails.inc({ kind, outcome });
      if (seconds !== undefined) attemptTimes.observe({ channel }, seconds);
    },
    onTurnedOff: (cause: string) => turnedOff.inc({ cause }),
    onBreaker: (change: 'opened' | 'closed') => breakers.inc({ change }),
    onRemoved(kind: string, count: number): void {
      if (count > 0) removed.inc({ kind }, count);
    },
    /** For how long a batch of submissions had been older than their forms keep them, at most; 0: there were none. */
    onRetention: (lateSeconds: number) => retention.set(lateSeconds),
    /** `failed`: the database did not take them then; `lost`: too many waited. */
    onAudit: (outcome: 'stored' | 'failed' | 'lost', count: number) => audit.inc({ outcome }, count),
    onWork(work: string, succeeded: boolean): void {
      if (succeeded) successes.set({ work }, Date.now() / 1000);
      else failures.inc({ work });
    },
  };
}

/** Records what happens. Nothing here throws or waits. */
export type Metrics = ReturnType<typeof createMetrics>;

/** The value of a gauge; undefined: there is none now. */
type Reading = number | undefined;

/** HTTP/2 takes any text for a method. */
const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
/** Up to the largest batches that there are. */
const ROWS = [1, 2, 5, 10, 20, 50, 100, 200, 500];

export type BuildFacts = { version: string; database: string };

/** The outcome of a claimed delivery; `postponed` and `dropped`: nothing was tried. */
export type AttemptOutcome = (typeof OUTCOMES)[number];

const OUTCOMES = ['delivered', 'retried', 'failed', 'postponed', 'dropped'] as const;

/** The budgets of a process; limits of callers are added as they are met. */
const LIMITS = [
  'connections',
  'connections_per_client',
  'body_bytes',
  'streams',
  'waits',
  'waiting_requests',
  'waiting_submissions',
  'disk',
] as const;

export type FinishedRequest = {
  /** The pattern of a path, or the name of an RPC as its path has it; undefined: it matched none. */
  route: string | undefined;
  method: string | undefined;
  /** That of HTTP; undefined if the caller has gone before there was one. */
  status: number | undefined;
  /** Why an RPC failed, by Connect's name. */
  code: string | undefined;
  /** Why it was refused, as errors name it. */
  reason: string | undefined;
  ms: number;
};

type FinishedAttempt = {
  channel: 'webhook' | 'mail';
  /** An email's kind. */
  kind: string;
  outcome: AttemptOutcome;
  /** Undefined if nothing was tried. */
  seconds: number | undefined;
};
