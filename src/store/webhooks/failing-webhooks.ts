import { rowsOf, textOrNull } from '../database/columns.ts';
import { type Page, type PageRequest, pageOf, type Queries, type Row } from '../database/queries.ts';
import { pendingWhere } from '../deliveries/queue-table.ts';
import { CALLBACKS, WebhookEntity } from './webhooks.ts';

/**
 * Lists webhooks, and origins of callbacks, that fail or were turned off for that, by their ids; or `id` alone,
 * however it is.
 */
export async function listFailingWebhooks(
  db: Queries,
  { limit, cursor = '', id }: PageRequest & { id?: string },
): Promise<Page<FailingWebhook>> {
  const rows = await db.select(
    `select ${failing.columns}, coalesce((
         select a.error from (
           select id from (${pendingWhere('webhook_id = w.id', 'id, last_attempt_at')}) as pending
           where last_attempt_at is not null order by last_attempt_at desc limit 1
         ) as q join attempts a on a.delivery_id = q.id order by a.number desc limit 1
       ), (
         select error from deliveries where webhook_id = w.id and status = 'failed' order by id desc limit 1
       )) as error
     from webhooks w
     where w.id > $1 and case when $3::text is null
       then w.deleted_at is null and (w.failing_since is not null or w.disabled_reason is not null) else w.id = $3 end
     order by w.id limit $2`,
    [cursor, limit + 1, id ?? null],
  );
  return pageOf(rows.map(toFailing), limit);
}

const failing = rowsOf(
  WebhookEntity,
  ['id', 'projectId', 'formId', 'url', 'failingSince', 'openUntil', 'disabledReason'],
  'w',
);

function toFailing(row: Row) {
  const { url, formId, ...webhook } = failing.map(row);
  // The rest of the URL can be secret.
  const { host } = new URL(url);
  return { ...webhook, formId: formId === CALLBACKS ? null : formId, host, error: textOrNull(row.error) };
}

/** `error` is that of the last attempt that failed. */
export type FailingWebhook = ReturnType<typeof toFailing>;

/**
 * Turns a webhook off for a reason in words; null if it was off already. Its pending deliveries fail when
 * its turn comes.
 */
export async function turnOffWebhook(
  db: Queries,
  { id, reason }: { id: string; reason: string },
): Promise<TurnedOffWebhook | null> {
  const [row] = await db.execute(
    `update webhooks set active = false, disabled_at = now(), disabled_reason = $2
     where id = $1 and active and deleted_at is null and form_id is distinct from '${CALLBACKS}'
     returning ${turnedOff.columns}`,
    [id, reason],
  );
  return row === undefined ? null : turnedOff.map(row);
}

const turnedOff = rowsOf(WebhookEntity, ['id', 'projectId', 'formId', 'url']);

export type TurnedOffWebhook = ReturnType<typeof turnedOff.map>;
