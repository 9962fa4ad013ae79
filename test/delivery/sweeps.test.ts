import { describe, expect, it } from 'vitest';
import { expireSessions, removeOld } from '../../src/delivery/sweeps/sweeps.ts';
import { newId, newSessionId } from '../../src/domain/ids.ts';
import { insertSession } from '../../src/store/sessions/sessions.ts';
import { engines, openTestDatabase } from '../support/database.ts';
import {
  deliveredByWebhook,
  expectFinished,
  givenForm,
  givenSubmissions,
  givenWebhook,
  startDelivery,
} from '../support/delivery.ts';
import { startReceiver } from '../support/receiver.ts';

describe.each(engines)('sweeps on %s', (engine) => {
  it('delivers the end of a session within seconds and only once, with several processes', async () => {
    await using database = await openTestDatabase(engine);
    await using receiver = await startReceiver();
    const form = await givenForm(database, deliveredByWebhook);
    await givenWebhook(database, form, { url: receiver.url });
    await using first = startDelivery(database);
    await using _second = startDelivery(database);
    const session = await insertSession(database, {
      id: newSessionId(),
      projectId: form.projectId,
      formId: form.id,
      versionId: form.versionId,
      prefill: {},
      metadata: { order: 7 },
      expiresIn: 1,
    });

    const [request] = await receiver.expectRequests(1);
    while (await expireSessions(first.options, () => undefined));
    const logged = await expectFinished(database, form, 1);

    expect(JSON.parse(request?.body ?? '{}')).toMatchObject({
      event: 'session.expired',
      data: {
        sessionId: session.id,
        formId: form.id,
        metadata: { order: 7 },
        expiresAt: session.expiresAt.toISOString(),
      },
    });
    expect(logged).toHaveLength(1);
    expect(receiver.received).toHaveLength(1);
  });

  it('removes finished deliveries and their events after the retention time, and no others', async () => {
    await using database = await openTestDatabase(engine);
    await using receiver = await startReceiver();
    const form = await givenForm(database, deliveredByWebhook);
    await givenWebhook(database, form, { url: receiver.url });
    await givenSubmissions(database, form, [{}, {}]);
    await using delivery = startDelivery(database, { settings: { retentionDays: 30 } });
    const [old] = await expectFinished(database, form, 2);
    await delivery.stop(1_000);
    const at = Date.now() - 31 * 24 * 3600 * 1000;
    await database.execute(
      `with e as (update events set id = $2 where id = $4 returning id)
       update deliveries set id = $1, event_id = $2 where id = $3`,
      [newId('dlv', at), newId('evt', at), old?.delivery.id, old?.delivery.eventId],
    );

    await removeOld(delivery.options);

    const [counts] = await database.select(
      `select (select count(*) from deliveries)::int as deliveries, (select count(*) from attempts)::int as attempts,
         (select count(*) from events)::int as events`,
    );
    expect(counts).toEqual({ deliveries: 1, attempts: 0, events: 1 });
  });

  it("removes a deleted webhook's history", async () => {
    await using database = await openTestDatabase(engine);
    await using receiver = await startReceiver();
    const form = await givenForm(database, deliveredByWebhook);
    const webhook = await givenWebhook(database, form, { url: receiver.url });
    await givenSubmissions(database, form, [{}]);
    await using delivery = startDelivery(database);
    await expectFinished(database, form, 1);
    await delivery.stop(1_000);
    await database.execute('update webhooks set deleted_at = now() where id = $1', [webhook.id]);

    await removeOld(delivery.options);
    await removeOld(delivery.options);

    const left = await database.select(
      'select id from deliveries union all select id from attempts union all select id from webhooks',
    );
    expect(left).toEqual([]);
  });
});
