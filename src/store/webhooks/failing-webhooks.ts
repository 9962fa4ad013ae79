import { textOrNull, timeOrNull } from '../database/columns.ts';
import { type Page, type PageRequest, pageOf, type Queries, type Row } from '../database/queries.ts';
import { pendingWhere } from '../deliveries/delivery-queue-table.ts';
import { CALLBACKS, type Webhook } from './webhooks.ts';

/**
 * Lists webhooks, and origins of callbacks, that fail or were turned off for that, by their ids; or `id` alone,
 * however it is.
 */
export async function listFailingWebhooks(
  db: Queries,
  { limit, cursor = '', id }: PageRequest & { id?: string },
): Promise<Page<FailingWebhook>> {
  const rows = await db.select(
    `select w.id, w.project_id, w.form_id, w.url, w.failing_since, w.open_until, w.disabled_reason, coalesce((
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

function toFailing(row: Row): FailingWebhook {
  return {
    id: String(row.id),
    projectId: String(row.project_id),
    formId: row.form_id === CALLBACKS ? null : textOrNull(row.form_id),
    host: new URL(String(row.url)).host,
    failingSince: timeOrNull(row.failing_since),
    openUntil: timeOrNull(row.open_until),
    disabledReason: textOrNull(row.disabled_reason),
    error: textOrNull(row.error),
  };
}

/** `host` of its URL, since the rest can be secret; `error` of the last attempt that failed. */
export type FailingWebhook = {
  id: string;
  projectId: string;
  formId: string | null;
  host: string;
  failingSince: Date | null;
  openUntil: Date | null;
  disabledReason: string | null;
  error: string | null;
};

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
     returning project_id, form_id, url`,
    [id, reason],
  );
  if (row === undefined) return null;
  return { id, projectId: String(row.project_id), formId: textOrNull(row.form_id), url: String(row.url) };
}

export type TurnedOffWebhook = Pick<Webhook, 'id' | 'projectId' | 'formId' | 'url'>;
