import { pino } from 'pino';
import { expect, it } from 'vitest';
import { createWorker } from '../../src/delivery/worker/worker.ts';
import { openTestDatabase } from '../support/database.ts';
import { until } from '../support/until.ts';

it('claims all that is due to receivers that are not known, without being woken again', async () => {
  await using database = await openTestDatabase('pglite');
  await database.execute(
    `insert into delivery_queue (id, project_id, form_id, share, channel, kind, receiver, mail, due_at, created_at, queued_at)
     select 'dlv_' || n, 'prj_1', 'form_1', 'prj_1', 'mail', 'owner', 'receiver_' || n % 60, '{}', now(), now(), now()
     from generate_series(1, 300) n`,
    [],
  );
  const sent: string[] = [];
  const worker = createWorker({
    database,
    workers: 64,
    times: { delaySeconds: 0, totalSeconds: 60 },
    attempt: async ({ id, lease }) => {
      sent.push(id);
      return { result: { id, lease, status: 'delivered' }, gone: false };
    },
    settle: async () => undefined,
    onGone: async () => undefined,
    signal: new AbortController().signal,
    now: Date.now,
    log: pino({ level: 'silent' }),
  });

  worker.wake();

  await until(
    () => sent.length === 300,
    10_000,
    () => `${sent.length} of 300 sent`,
  );
  expect(new Set(sent).size).toBe(300);
  await worker.stop();
});
