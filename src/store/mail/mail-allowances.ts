import { defineEntity, p } from '@mikro-orm/core';
import type { MailAllowance } from '../../domain/delivery/mails.ts';
import { id, text, time } from '../database/columns.ts';
import type { Transaction, Transactions } from '../database/queries.ts';

/** The emails that were counted against an allowance on a day (UTC). */
export const MailAllowanceEntity = defineEntity({
  name: 'MailAllowance',
  tableName: 'mail_allowances',
  properties: {
    /** Whose it is: a mailbox as `mailboxOf` gives it, or a form's `createdFrom`. */
    holder: text().primary(),
    kind: text().primary(),
    /** `YYYY-MM-DD`. */
    day: text().primary(),
    /** The ids of the deliveries, so that one that is attempted again is not counted again. */
    deliveryIds: p.array(),
  },
  indexes: [{ name: 'mail_allowances_by_day', properties: ['day'] }],
});

/** When a form last emailed an address what it sends once in 24 hours: an autoresponse, or a notice. */
export const AutoresponseEntity = defineEntity({
  name: 'Autoresponse',
  tableName: 'autoresponses',
  properties: {
    formId: id().primary(),
    /** A mailbox as `mailboxOf` gives it. */
    address: text().primary(),
    sentAt: time(),
  },
  indexes: [{ name: 'autoresponses_by_time', properties: ['sentAt'] }],
});

/** `YYYY-MM-DD`, in UTC. */
export const TODAY = "to_char(now() at time zone 'UTC', 'YYYY-MM-DD')";

/**
 * Counts an email against all of these allowances, or against none if one of them is used up for today (UTC).
 * An email that was counted today is not counted again.
 *
 * Returns null if it may go, else the allowance that is used up and when the next day begins. Those of mailboxes
 * come first, so that two calls never wait for each other.
 */
export async function takeMailAllowances(
  database: Transactions,
  deliveryId: string,
  allowances: MailAllowance[],
): Promise<(MailAllowance & { waitMs: number }) | null> {
  try {
    await database.transaction(async (tx) => {
      for (const allowance of allowances) await takeMailAllowance(tx, deliveryId, allowance);
    });
    return null;
  } catch (error) {
    if (!(error instanceof AllowanceUsedUp)) throw error;
    return { ...error.allowance, waitMs: error.waitMs };
  }
}

async function takeMailAllowance(
  tx: Transaction,
  deliveryId: string,
  allowance: MailAllowance,
): Promise<void> {
  const waitMs = await countAgainst(tx, deliveryId, allowance);
  if (waitMs !== null) throw new AllowanceUsedUp(allowance, waitMs);
}

/**
 * Counts `countedAs` against one allowance, once a day (UTC). Returns null if it may go; else for how long the
 * allowance is used up, in milliseconds, and the caller ends the transaction.
 */
export async function countAgainst(
  tx: Transaction,
  countedAs: string,
  { holder, kind, limit }: MailAllowance,
): Promise<number | null> {
  const [row] = await tx.execute(
    `with taken as (
       insert into mail_allowances as a (holder, kind, day, delivery_ids)
       select $1, $2, ${TODAY}, array[$3] where $4 > 0
       on conflict (holder, kind, day) do update
         set delivery_ids = case when $3 = any(a.delivery_ids) then a.delivery_ids else a.delivery_ids || $3 end
         where $3 = any(a.delivery_ids) or cardinality(a.delivery_ids) < $4
       returning holder
     )
     select (select count(*) from taken) as taken,
       extract(epoch from date_trunc('day', now() at time zone 'UTC') + interval '1 day'
         - (now() at time zone 'UTC')) * 1000 as wait_ms`,
    [holder, kind, countedAs, limit],
  );
  return Number(row?.taken) === 0 ? Number(row?.wait_ms) : null;
}

/** Rolls back what was counted against other allowances. */
class AllowanceUsedUp extends Error {
  readonly allowance: MailAllowance;
  readonly waitMs: number;

  constructor(allowance: MailAllowance, waitMs: number) {
    super('No more emails of this kind today');
    this.allowance = allowance;
    this.waitMs = waitMs;
  }
}
