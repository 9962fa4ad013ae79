import { invalid } from '../../rpc/errors.ts';
import type { Transaction } from '../../store/database/database.ts';
import { lockProject } from '../../store/projects/projects.ts';
import { countWebhooks, insertWebhook, type Webhook } from '../../store/webhooks/webhooks.ts';

/**
 * Stores a webhook, unless its project or one of its forms has as many as it may. Of any number of calls at
 * once, by any number of processes, no more are stored.
 *
 * What strangers make, the webhooks of forms made without a key, is counted apart: it never uses up what the
 * project's keys may make. Throws `INVALID_ARGUMENT` at `path`.
 */
export async function insertWithinLimits(
  tx: Transaction,
  webhook: Webhook,
  { maxWebhooks, path }: { maxWebhooks: number; path: string },
): Promise<void> {
  await lockProject(tx, webhook.projectId);
  const counts = await countWebhooks(tx, webhook);
  const message = tooMany(webhook, counts, maxWebhooks);
  if (message !== undefined) throw invalid([{ path, code: 'too_big', message }]);
  await insertWebhook(tx, webhook);
}

function tooMany(
  { formId, keyless }: Webhook,
  counts: ReadonlyMap<string | null, number>,
  maxWebhooks: number,
): string | undefined {
  const total = counts.values().reduce((sum, count) => sum + count, 0);
  if (total >= maxWebhooks) {
    return `A project has at most ${maxWebhooks} webhooks${keyless ? ' of forms made without a key' : ''}`;
  }
  const ofAllForms = counts.get(null) ?? 0;
  const bound = formId === null ? mostOfOneForm(counts) : (counts.get(formId) ?? 0);
  if (ofAllForms + bound < MAX_LISTENING) return undefined;
  return `At most ${MAX_LISTENING} webhooks listen to one form, those of all forms included`;
}

function mostOfOneForm(counts: ReadonlyMap<string | null, number>): number {
  return Math.max(0, ...counts.entries().map(([formId, count]) => (formId === null ? 0 : count)));
}

/** Each submission makes a delivery for each of them. */
const MAX_LISTENING = 10;
