import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { expect, it } from 'vitest';
import { MAIL_CONNECTIONS } from '../../src/delivery/mail/transport.ts';
import { createWorker, type Worker } from '../../src/delivery/worker/worker.ts';
import { openTestDatabase, type TestDatabase } from '../support/database.ts';
import { until } from '../support/until.ts';

/** Thousands of deliveries take as long on a busy machine. */
const SLOW_MS = 80_000;

it('claims all that is due to receivers that are not known, without being woken again', async () => {
  await using database = await openTestDatabase('pglite');
  await givenDeliveries(database, { projectId: 'prj_1', count: 300, receivers: 60, lateMs: 0 });
  const sent: string[] = [];
  const worker = startWorker(database, (id) => void sent.push(id));

  worker.wake();

  await until(
    () => sent.length === 300,
    undefined,
    () => `${sent.length} of 300 sent`,
  );
  expect(new Set(sent).size).toBe(300);
  await worker.stop();
});

it("does not let what is due to one project's quick receiver keep a later delivery of another waiting to its end", async () => {
  await using database = await openTestDatabase('pglite');
  await givenDeliveries(database, { projectId: 'prj_busy', count: 30_000, receivers: 1, lateMs: 10_000 });
  const sent = { busy: 0, other: 0 };
  const worker = startWorker(database, (_id, projectId) => {
    sent[projectId === 'prj_other' ? 'other' : 'busy'] += 1;
  });

  worker.wake();
  await until(() => sent.busy > 1_000);
  await givenDeliveries(database, { projectId: 'prj_other', count: 1, receivers: 1, lateMs: 0 });

  await until(
    () => sent.other === 1,
    30_000,
    () => `${sent.busy} sent to the busy one`,
  );
  expect(sent.busy).toBeLessThan(20_000);
  await worker.stop();
});

it('claims by the names of receivers for a tenth of the time at most, however long that takes', {
  timeout: 3 * SLOW_MS,
}, async () => {
  await using database = await openTestDatabase('pglite');
  await givenDeliveries(database, { projectId: 'prj_busy', count: 25_000, receivers: 1, lateMs: 10_000 });
  const turnMs: number[] = [];
  const slow: TestDatabase = {
    ...database,
    async execute(sql, ...rest) {
      const startedAt = performance.now();
      if (sql.includes('with recursive')) await sleep(100);
      const rows = await database.execute(sql, ...rest);
      if (sql.includes('with recursive')) turnMs.push(performance.now() - startedAt);
      return rows;
    },
  };
  let sent = 0;
  const worker = startWorker(slow, () => {
    sent += 1;
  });

  worker.wake();
  // Until then claims are small: by names there may be more.
  await until(() => sent > 5_000, SLOW_MS);
  const startedAt = performance.now();
  const turnsBefore = turnMs.length;
  await until(() => sent > 20_000, SLOW_MS);
  const tookMs = performance.now() - startedAt;
  await worker.stop();

  // The first and the last one may have been just then.
  const within = turnMs.slice(turnsBefore + 1, -1);
  expect(within.reduce((sum, ms) => sum + ms, 0)).toBeLessThan(tookMs / 9);
});

it('does not let what is due of one project’s mails keep one of another waiting to its end', async () => {
  await using database = await openTestDatabase('pglite');
  const mails = { receivers: 2_000, channel: 'mail' };
  await givenDeliveries(database, { projectId: 'prj_busy', count: 4_000, lateMs: 10_000, ...mails });
  const sent = { busy: 0, other: 0 };
  const worker = startWorker(database, (_id, projectId) => {
    sent[projectId === 'prj_other' ? 'other' : 'busy'] += 1;
  });

  worker.wake();
  await until(() => sent.busy > 100);
  await givenDeliveries(database, { projectId: 'prj_other', count: 1, lateMs: 0, ...mails });

  await until(
    () => sent.other === 1,
    30_000,
    () => `${sent.busy} sent to the busy one`,
  );
  expect(sent.busy).toBeLessThan(2_000);
  await worker.stop();
});

/** What is due, by turns to so many receivers. */
async function givenDeliveries(
  database: TestDatabase,
  {
    projectId,
    count,
    receivers,
    lateMs,
    channel = 'webhook',
  }: { projectId: string; count: number; receivers: number; lateMs: number; channel?: string },
): Promise<void> {
  await database.execute(
    `insert into delivery_queue (id, project_id, form_id, share, channel, kind, receiver, mail, due_at, created_at, queued_at)
     select 'dlv_' || $1 || n, $1, 'form_1', $1, $5, 'owner', $1 || n % $3::int, '{}',
       now() - $4::int * interval '1 ms', now(), now()
     from generate_series(1, $2::int) n`,
    [projectId, count, receivers, lateMs, channel],
  );
}

/** A worker whose receivers take all at once. */
function startWorker(database: TestDatabase, onSent: (id: string, projectId: string) => void): Worker {
  return createWorker({
    database,
    concurrency: 64,
    mailConnections: MAIL_CONNECTIONS,
    times: { delaySeconds: 0, totalSeconds: 60 },
    attempt: async ({ id, lease, projectId }) => {
      onSent(id, projectId);
      return { result: { id, lease, status: 'delivered' }, gone: false };
    },
    settle: async () => undefined,
    onGone: () => undefined,
    signal: new AbortController().signal,
    now: Date.now,
    log: pino({ level: 'silent' }),
  });
}
