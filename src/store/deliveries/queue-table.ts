import { defineEntity, p } from '@mikro-orm/core';
import { id, type JsonObject, json, text, time } from '../database/columns.ts';

/** What a delivery has in the queue and in the log. */
export const propertiesOfDelivery = () => ({
  id: id().primary(),
  projectId: id(),
  formId: id(),
  /** Null for emails without an event, such as the one about a webhook that was turned off. */
  eventId: id().strictNullable(),
  webhookId: id().strictNullable(),
  channel: p.enum(['webhook', 'mail']).columnType('text'),
  /** A webhook's event type, or what an email is: `owner`, `confirmation`, `autoresponse`, `recipient_confirmation` … */
  kind: text(),
  /** The webhook's id, or the email address. Claims are shared fairly between receivers. */
  receiver: text().collation('C'),
  /** Where a webhook delivery goes, for replays too; null for email. */
  url: text().strictNullable(),
  attemptCount: p.integer(),
  createdAt: time(),
  lastAttemptAt: time().strictNullable(),
  /** Of the last attempt. */
  responseStatus: p.integer().strictNullable(),
  /** Of the last attempt, or what it waits for. */
  error: text().strictNullable(),
  /** The code of `error`, of which `domain/delivery/causes.ts` has a table; null if it is about an attempt. */
  cause: text().strictNullable(),
});

/**
 * What is pending: one event (or one email) on its way to one receiver. Settling deletes the row and writes
 * that of the log; between the two nothing is written for a delivery that succeeds at once.
 */
export const QueuedDeliveryEntity = defineEntity({
  name: 'QueuedDelivery',
  tableName: 'delivery_queue',
  properties: {
    ...propertiesOfDelivery(),
    /** Whose part of the capacity it uses: the project's, or that of its forms made without a key. */
    share: text().collation('C'),
    /** What an email says; null for webhooks, whose body is the event's. */
    mail: json<JsonObject>().strictNullable(),
    attemptCount: p.integer().default(0),
    /** Its place in the retry schedule, from when it was made or last replayed. */
    step: p.integer().default(0),
    /** The next attempt. */
    dueAt: time(),
    /**
     * The lease of the process that stored it, which attempts it without asking for it. Null from the end
     * of that lease on: only then the row is in the indexes of what is pending.
     */
    firstLeaseUntil: time().strictNullable(),
    /** When the lease of the process that claimed it ends. In no index: see `claimDue`. */
    leasedUntil: time().strictNullable(),
    /** When it was made or last replayed. */
    queuedAt: time(),
    /** Put off by the circuit breaker of its webhook, once or more, since it was queued. */
    postponed: p.boolean().default(false),
  },
  indexes: [
    { name: 'delivery_queue_due', properties: ['dueAt'], where: 'first_lease_until is null' },
    {
      name: 'delivery_queue_by_receiver',
      properties: ['share', 'receiver', 'dueAt'],
      where: 'first_lease_until is null',
    },
    {
      name: 'delivery_queue_by_webhook',
      properties: ['webhookId', 'id'],
      where: 'first_lease_until is null and webhook_id is not null',
    },
    { name: 'delivery_queue_by_form', properties: ['formId', 'id'], where: 'first_lease_until is null' },
    {
      name: 'delivery_queue_by_event',
      properties: ['eventId'],
      where: 'first_lease_until is null and event_id is not null',
    },
    {
      name: 'delivery_queue_first_leases',
      properties: ['firstLeaseUntil'],
      where: 'first_lease_until is not null',
    },
  ],
});

/**
 * Selects columns of the pending deliveries that fulfil a condition on an indexed column. Those with a first
 * lease are in no index but that of their leases: there are a few hundred at most.
 */
export function pendingWhere(condition: string, columns = 'id'): string {
  return `select ${columns} from delivery_queue where first_lease_until is null and ${condition}
    union all select ${columns} from delivery_queue where first_lease_until is not null and ${condition}`;
}

/** SQL: pending and not leased. */
export const isFree = `first_lease_until is null and (leased_until is null or leased_until <= now())`;

/**
 * The lease in seconds. What a claimed webhook may wait, an attempt and storing its result last are shorter together, so
 * that a slow one is not made twice. Emails can take longer, and renew it meanwhile.
 */
export const LEASE_SECONDS = 60;
