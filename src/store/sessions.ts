import { defineEntity, type InferEntity } from '@mikro-orm/core';
import { id, type JsonObject, json, time } from './columns.ts';

/** A one-off fillable instance of a form. Its id is a secret: whoever has it may fill the form. */
export const SessionEntity = defineEntity({
  name: 'Session',
  tableName: 'sessions',
  properties: {
    id: id().primary(),
    projectId: id(),
    formId: id(),
    versionId: id(),
    prefill: json<JsonObject>(),
    metadata: json<JsonObject>(),
    partialAnswers: json<JsonObject>().strictNullable(),
    createdAt: time(),
    expiresAt: time(),
    /** When the hosted page was first opened. */
    openedAt: time().strictNullable(),
    submittedAt: time().strictNullable(),
    submissionId: id().strictNullable(),
    /** When the expiry became an event; set in the commit that holds the event, so it happens once. */
    expiryAnnouncedAt: time().strictNullable(),
  },
  indexes: [
    {
      name: 'sessions_to_expire',
      properties: ['expiresAt'],
      where: 'submitted_at is null and expiry_announced_at is null',
    },
    { name: 'sessions_by_form', properties: ['formId', 'expiresAt'] },
  ],
});

export type SessionRow = InferEntity<typeof SessionEntity>;
