import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { id, type JsonObject, json, text, time } from './columns.ts';

/** Accepted answers. Never changes after it is stored; rows are written by the submission writer. */
export const SubmissionEntity = defineEntity({
  name: 'Submission',
  tableName: 'submissions',
  properties: {
    id: id().primary(),
    projectId: id(),
    formId: id(),
    versionId: id(),
    sessionId: id().strictNullable(),
    source: text(),
    /** In the order of the version's fields. */
    answers: json<JsonObject>(),
    metadata: json<JsonObject>(),
    status: p.enum(['accepted', 'spam']).columnType('text'),
    idempotencyKey: text().strictNullable(),
    /** Digest of the request that used the idempotency key, so that its reuse for another can be told. */
    requestFingerprint: text().strictNullable(),
    createdAt: time(),
  },
  indexes: [
    { name: 'submissions_by_form', properties: ['formId', 'status', 'id'] },
    { name: 'submissions_by_source', properties: ['formId', 'status', 'source', 'id'] },
    {
      name: 'submissions_by_session',
      properties: ['sessionId', 'id'],
      where: 'session_id is not null',
    },
  ],
  uniques: [
    {
      name: 'submissions_idempotency_unique',
      properties: ['formId', 'idempotencyKey'],
      where: 'idempotency_key is not null',
    },
  ],
});

export type Submission = InferEntity<typeof SubmissionEntity>;
