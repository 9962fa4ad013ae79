import type { HandlerContext } from '@connectrpc/connect';
import { notifiedAs, strangersOfKey } from '../../domain/delivery/mails.ts';
import { insufficientScope, limited } from '../../domain/errors/failure.ts';
import { holds } from '../../domain/scopes.ts';
import { callerOf } from '../../rpc/context.ts';
import type { Transaction } from '../../store/database/database.ts';
import { findFirstMaker } from '../../store/keys.ts';
import { countAgainst } from '../../store/mail/mail-allowances.ts';
import { hasConfirmed } from '../../store/mail/mail-recipients.ts';
import type { ServiceContext } from '../context.ts';

/** Throws INSUFFICIENT_SCOPE unless the caller may have others mailed. */
export function requireNotifyScope(call: HandlerContext): void {
  if (!holds(callerOf(call).scopes, 'sessions:notify')) {
    throw insufficientScope('sessions:notify', 'to email or notify a person');
  }
}

/**
 * Counts the mailboxes that a call has mailed against what its key may have mailed today (UTC) of those that have not
 * confirmed anything to the service. A mailbox counts once a day, whatever it is mailed for and by whichever of its
 * addresses, and a key counts with the one that made it. Call it in the transaction that stores what causes the mails.
 *
 * Throws RATE_LIMITED if there are too many: let it end the transaction.
 */
export async function countNotifiedMailboxes(
  tx: Transaction,
  { secretKey, settings }: Pick<ServiceContext, 'secretKey' | 'settings'>,
  { keyId, addresses }: { keyId: string; addresses: string[] },
): Promise<void> {
  const limit = settings.notifyMailboxesPerKey;
  for (const address of new Set(addresses)) {
    if (await hasConfirmed(tx, address)) continue;
    const allowance = strangersOfKey(await findFirstMaker(tx, keyId), limit);
    const waitMs = await countAgainst(tx, notifiedAs(secretKey, address), allowance);
    if (waitMs !== null) {
      const message = `This key has had emails sent to ${limit} mailboxes today that have not confirmed anything`;
      throw limited('notified_mailboxes', message, waitMs / 1000);
    }
  }
}
