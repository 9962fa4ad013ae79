import { createClient } from '@connectrpc/connect';
import { describe, expect, it } from 'vitest';
import { WebhooksService } from '../../gen/headlessforms/v1/webhooks_pb.js';
import { replay } from '../../src/cli/deliveries.ts';
import { newId } from '../../src/domain/ids.ts';
import type { Database } from '../../src/store/database/database.ts';
import { replayDeliveries } from '../../src/store/deliveries/replay.ts';
import { engines } from '../support/database.ts';
import { startService } from '../support/server.ts';

const COUNT = 10_050;

describe.each(engines)('failed deliveries on %s', (engine) => {
  it('are sent again 10,000 a call, oldest first, and by the command line all of them', async () => {
    await using service = await startService({ engine, env: { DELIVERY_WORKERS: '0' } });
    const webhookId = await givenFailures(service);
    const path = `/v1/webhooks/${webhookId}/replay`;

    const first = await service.post(path);
    const rest = await failedOf(service.database);
    const second = await service.post(path, { created_after: first.json.next_created_after });
    await service.database.execute('delete from delivery_queue');
    await givenFailures(service, webhookId);
    const lines: string[] = [];
    const options = { transport: service.transport(), key: service.key };
    await replay({ ...options, ids: [webhookId], print: (line) => void lines.push(line) });

    expect(first.json).toEqual({
      ok: true,
      count: 10_000,
      more: true,
      next_created_after: expect.any(String),
    });
    expect([rest.length, Math.min(...rest)]).toEqual([50, 10_001]);
    expect(second.json).toEqual({ ok: true, count: 50, more: false, next_created_after: null });
    expect(lines).toEqual([`${webhookId}: ${COUNT} pending`]);
  });

  it('stay as they are from when on nobody waits for the call', async () => {
    await using service = await startService({ engine, env: { DELIVERY_WORKERS: '0' } });
    const webhookId = await givenFailures(service);
    const call = new AbortController();
    let slices = 0;
    const leaving: Database = {
      ...service.database,
      transaction: async (work) => {
        slices += 1;
        if (slices === 3) call.abort();
        return service.database.transaction(work);
      },
    };

    const replayed = replayDeliveries(leaving, { webhookId }, call.signal);

    await expect(replayed).rejects.toThrow();
    expect(slices).toBe(3);
    expect((await failedOf(service.database)).length).toBeGreaterThan(COUNT - 1_000);
    const webhooks = createClient(WebhooksService, service.transport());
    await expect(webhooks.replayDeliveries({ webhookId }, { signal: AbortSignal.abort() })).rejects.toThrow();
  });
});

/** Failed deliveries, made one a millisecond, to one webhook. Returns its id. */
async function givenFailures(
  service: Awaited<ReturnType<typeof startService>>,
  given?: string,
): Promise<string> {
  const url = 'http://127.0.0.1:1/';
  const made =
    given ?? (await service.post('/v1/webhooks', { url, events: ['submission.created'] })).json.webhook.id;
  const begin = Date.now() - COUNT;
  const ids = Array.from({ length: COUNT }, (_, n) => newId('dlv', begin + n));
  await service.database.execute(
    `with given as (select id, n, id || '-event' as event_id from unnest($1::text[]) with ordinality as g(id, n)),
       announced as (
         insert into events (id, project_id, form_id, type, body, created_at, fanned_out_at)
         select event_id, w.project_id, 'form_1', 'submission.created', '{}', now(), now() from given, webhooks w
       )
     insert into deliveries (id, project_id, form_id, event_id, webhook_id, channel, kind, receiver, url, status,
       attempt_count, created_at)
     select g.id, w.project_id, 'form_1', g.event_id, w.id, 'webhook', 'submission.created', w.id, w.url, 'failed', g.n,
       now()
     from given g, webhooks w`,
    [ids],
  );
  return String(made);
}

/** The places of those that are still failed, from 1. */
async function failedOf(database: Database): Promise<number[]> {
  const rows = await database.select(`select attempt_count as place from deliveries where status = 'failed'`);
  return rows.map(({ place }) => Number(place));
}
