import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { resealGroup, resealKeyCheck, sealedTables } from '../../store/sealed-secrets.ts';
import type { DeliveryOptions } from '../options.ts';

/**
 * Makes the work that seals all stored secrets anew after SECRET_KEY was changed, a group a run. A run returns
 * whether there is more; at the end it is logged that SECRET_KEY_PREVIOUS may go.
 */
export function createResealing({ database, secrets, log }: ResealingOptions): () => Promise<boolean> {
  const tables = [...sealedTables];
  let after = '';
  let resealed = 0;
  let unreadable = 0;

  return async () => {
    const [table] = tables;
    if (table === undefined) return false;
    // The embedded database answers within the turn: without this, nothing else would run until the end.
    await yieldToEventLoop();
    const group = await database.transaction((tx) =>
      resealGroup(tx, secrets, { table, after, limit: GROUP }),
    );
    resealed += group.resealed;
    unreadable += group.unreadable;
    after = group.next ?? '';
    if (group.next !== null) return true;
    tables.shift();
    if (tables.length > 0) return true;

    await resealKeyCheck(database, secrets);
    if (unreadable > 0) {
      log.error(
        { unreadable },
        "Some stored secrets open with neither SECRET_KEY nor SECRET_KEY_PREVIOUS; their webhooks can't be signed.",
      );
    }
    log.info(
      { resealed },
      'All stored secrets are sealed with SECRET_KEY. SECRET_KEY_PREVIOUS is needed for links in mails alone.',
    );
    return false;
  };
}

/** Rows of one transaction: some milliseconds of work. */
const GROUP = 200;

export type ResealingOptions = Pick<DeliveryOptions, 'database' | 'secrets' | 'log'>;
