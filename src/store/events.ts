import { defineEntity, type InferEntity } from '@mikro-orm/core';
import { id, text, time } from './columns.ts';

/** The outbox: what happened, committed together with what it tells of. */
export const EventEntity = defineEntity({
  name: 'Event',
  tableName: 'events',
  properties: {
    id: id().primary(),
    projectId: id(),
    formId: id(),
    /** `submission.created`, `submission.completed`, `session.expired` or `webhook.test`. */
    type: text(),
    submissionId: id().nullable(),
    sessionId: id().nullable(),
    /** The webhook body, fixed here: every delivery and retry sends these characters. */
    body: text(),
    createdAt: time(),
    /** When the event became deliveries; null while it waits. */
    fannedOutAt: time().nullable(),
  },
  indexes: [
    { name: 'events_waiting', properties: ['id'], where: 'fanned_out_at is null' },
    { name: 'events_by_submission', properties: ['submissionId'], where: 'submission_id is not null' },
    { name: 'events_fanned_out', properties: ['fannedOutAt'], where: 'fanned_out_at is not null' },
    { name: 'events_by_project', properties: ['projectId', 'id'] },
  ],
});

export type Event = InferEntity<typeof EventEntity>;
