import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { id, type JsonObject, json, text, time } from './columns.ts';

/** One event (or one mail) on its way to one receiver. */
export const DeliveryEntity = defineEntity({
  name: 'Delivery',
  tableName: 'deliveries',
  properties: {
    id: id().primary(),
    projectId: id(),
    formId: id(),
    /** Null for mails that tell of no event, such as the confirmation. */
    eventId: id().strictNullable(),
    webhookId: id().strictNullable(),
    submissionId: id().strictNullable(),
    channel: p.enum(['webhook', 'mail']).columnType('text'),
    /** A webhook's event type, or what a mail is: `owner`, `confirmation`, `autoresponse`, `recipient_confirmation` … */
    kind: text(),
    /** Whose turn it is: the webhook's id, or the mail address. Claims are fair by it. */
    receiver: text().collation('C'),
    /** Where a webhook delivery goes, for replays too; null for mail. */
    url: text().strictNullable(),
    /** What a mail says; null for webhooks, whose body is the event's. */
    mail: json<JsonObject>().strictNullable(),
    status: p.enum(['pending', 'delivered', 'failed']).columnType('text'),
    attemptCount: p.integer().default(0),
    /** Attempts since it was made or last replayed: its place in the retry schedule. */
    step: p.integer().default(0),
    /** The next attempt, while pending; a claim moves it to the end of the lease. */
    dueAt: time().strictNullable(),
    /** The claim's end; the process that holds it settles only while it stands. */
    leasedUntil: time().strictNullable(),
    createdAt: time(),
    lastAttemptAt: time().strictNullable(),
    deliveredAt: time().strictNullable(),
    /** Of the last attempt. */
    responseStatus: p.integer().strictNullable(),
    error: text().strictNullable(),
  },
  indexes: [
    { name: 'deliveries_due', properties: ['dueAt'], where: "status = 'pending'" },
    { name: 'deliveries_due_by_receiver', properties: ['receiver', 'dueAt'], where: "status = 'pending'" },
    {
      name: 'deliveries_by_webhook',
      properties: ['webhookId', 'id'],
      where: 'webhook_id is not null',
    },
    { name: 'deliveries_by_form', properties: ['formId', 'id'] },
    { name: 'deliveries_by_event', properties: ['eventId'], where: 'event_id is not null' },
    { name: 'deliveries_by_submission', properties: ['submissionId'], where: 'submission_id is not null' },
    { name: 'deliveries_finished', properties: ['createdAt'], where: "status <> 'pending'" },
  ],
});

export type Delivery = InferEntity<typeof DeliveryEntity>;
