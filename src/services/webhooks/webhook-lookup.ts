import { isId } from '../../domain/ids.ts';
import type { Caller } from '../../rpc/context.ts';
import { notFound } from '../../rpc/errors.ts';
import type { Queries } from '../../store/database/database.ts';
import { findWebhook, type Webhook } from '../../store/webhooks.ts';

/** A webhook of the caller's project. Throws NOT_FOUND. */
export async function webhookOf(db: Queries, caller: Caller, webhookId: string): Promise<Webhook> {
  const webhook = isId('wh', webhookId) ? await findWebhook(db, caller.projectId, webhookId) : null;
  if (webhook === null) throw notFound('webhook');
  return webhook;
}
