import { expect, it } from 'vitest';
import { postponeDeliveries } from '../../../src/store/deliveries/postpone.ts';
import { engines, openTestDatabase } from '../../support/database.ts';
import { deliveredByWebhook, givenForm, givenWebhook } from '../../support/delivery.ts';

const postponement = {
  tenant: 'prj_one',
  openUntil: new Date('2026-11-27T12:00:00Z'),
  totalSeconds: 100_000,
};

it.each(engines)(
  'what waits for a failing webhook is moved in the order of its index, though the planner knows nothing of the table, on %s',
  async (engine) => {
    await using database = await openTestDatabase(engine);
    const form = await givenForm(database, deliveredByWebhook);
    const { id: webhookId } = await givenWebhook(database, form, { failingSince: new Date() });
    await database.execute(
      `insert into delivery_queue (id, project_id, form_id, event_id, webhook_id, share, channel,
        kind, receiver, due_at, created_at, queued_at)
      select 'dlv_' || n, 'prj_one', 'form_one', 'evt_' || n, $1, 'prj_one', 'webhook', 'submission.created',
        $1, '2026-11-27T11:00:00Z'::timestamptz + n * interval '1 millisecond', now(), '2026-11-27T11:00:00Z'
      from generate_series(1, 5000) n`,
      [webhookId],
    );
    const plans: string[] = [];

    await postponeDeliveries(
      {
        slots: database.slots,
        transaction: (work) =>
          database.transaction((tx) =>
            work({
              ...tx,
              execute: async (sql, params) => {
                if (!sql.includes('delivery_queue')) return tx.execute(sql, params);
                const plan = await tx.select(`explain ${sql}`, params);
                plans.push(plan.map((row) => String(row['QUERY PLAN'])).join('\n'));
                return [{ count: 0 }];
              },
            }),
          ),
      },
      { ...postponement, webhookId },
    );

    expect(plans).toHaveLength(1);
    expect(plans[0]).toContain('Incremental Sort');
    expect(plans[0]).toContain('delivery_queue_by_receiver');
    expect(plans[0]).toContain('delivery_queue_pkey');
    expect(plans[0]).not.toMatch(
      /Bitmap|Seq Scan on delivery_queue|delivery_queue_due|delivery_queue_by_form/,
    );
  },
);
