import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import type { SessionOrigins } from '../../domain/answers/provenance.ts';
import type { SessionContext } from '../../domain/sessions/context.ts';
import { id, type JsonObject, json, rowsOf, sealed, text, time, timeOf } from '../database/columns.ts';
import type { Row } from '../database/queries.ts';

/** A one-off fillable instance of a form. Its id is a secret: anyone who has it may fill the form. */
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
    /** Where the person is on a page of its maker's own. */
    step: p.integer().strictNullable(),
    /** Where both come from; null for sessions that are older than the record. */
    provenance: json<SessionOrigins>().strictNullable(),
    /** Where the person is sent after submitting. */
    returnUrl: text().strictNullable(),
    createdAt: time(),
    expiresAt: time(),
    /** When the hosted page was first opened. */
    openedAt: time().strictNullable(),
    submittedAt: time().strictNullable(),
    submissionId: id().strictNullable(),
    /** Whether the address gets the session's id and outcome. */
    returnOutcome: p.boolean().default(false),
    /** What the person is shown above the questions. */
    context: json<SessionContext>().strictNullable(),
    allowDecline: p.boolean().default(false),
    /** When its maker ended it, or the person declined: a version that knows only the former refuses answers, too. */
    cancelledAt: time().strictNullable(),
    declinedAt: time().strictNullable(),
    declineReason: text().strictNullable(),
    /**
     * When its end without a submission became an event; set in that event's commit, so it happens once. Sessions of
     * visitors have it from the beginning: their end is no event.
     */
    expiryAnnouncedAt: time().strictNullable(),
    /** As the version before stored it: its callers shared the keys of a form. */
    idempotencyKey: text().strictNullable(),
    /** Digest of the caller, the form that the request names, if any, and the idempotency key. */
    requestKey: text().strictNullable(),
    /** Digest of the request that used the idempotency key, so that its reuse for another is found. */
    requestFingerprint: text().strictNullable(),
    /** Where its end is reported; its signing secret is sealed. */
    callback: json<StoredCallback>().strictNullable(),
    callbackSecret: sealed().strictNullable(),
    /** Who is notified of it, and the events of that. */
    notify: json<StoredNotify>().strictNullable(),
    /** Who is to answer; the page asks for a code first. */
    respondent: json<StoredRespondent>().strictNullable(),
    /** What it counts for where a visitor of the form's own page began it; null: made for somebody. */
    keylessBytes: p.integer().strictNullable(),
  },
  indexes: [
    {
      name: 'sessions_to_expire',
      properties: ['expiresAt'],
      where: 'submitted_at is null and expiry_announced_at is null',
    },
    { name: 'sessions_by_form', properties: ['formId', 'expiresAt'] },
    {
      name: 'sessions_of_visitors',
      properties: ['expiresAt'],
      where: 'keyless_bytes is not null',
    },
    { name: 'sessions_by_age', properties: ['formId', 'createdAt', 'id'] },
  ],
  uniques: [
    {
      name: 'sessions_idempotency_unique',
      properties: ['formId', 'idempotencyKey'],
      where: 'idempotency_key is not null',
    },
    { name: 'sessions_request_unique', properties: ['requestKey'], where: 'request_key is not null' },
  ],
});

/** `keyId` is the key that may read the answers of the session, if its maker's key could. */
export type StoredCallback = { url: string; origin: string; template?: JsonObject; keyId?: string };

/**
 * `remindAfter` is in seconds; the events are those of the first notification and of each reminder, in order. `keyId`
 * is the key that asked.
 */
export type StoredNotify = {
  email?: string;
  webhookId?: string;
  message?: string;
  remindAfter: number[];
  keyId: string;
  eventIds: string[];
};

/** `codes` is how many were emailed. */
export type StoredRespondent = { email: string; codes: number };

/** `now()` is the transaction's beginning; a session must be judged by the instant it is read. */
export const statusNow = `case when submitted_at is not null then 'submitted'
    when declined_at is not null then 'declined' when cancelled_at is not null then 'cancelled' when expires_at <= clock_timestamp() then 'expired' else 'open' end`;

const stored = rowsOf(SessionEntity);

export const sessionColumns = `${stored.columns}, clock_timestamp() as "readAt", ${statusNow} as status`;

export function toSession(row: Row): Session {
  const readAt = timeOf(row.readAt);
  const status = sessionStatuses.find((each) => each === row.status) ?? 'open';
  return { ...stored.map(row), readAt, status };
}

const sessionStatuses = ['open', 'submitted', 'declined', 'expired', 'cancelled'] as const;

/** A session as it was at `readAt`, by the database's clock. */
export type Session = Omit<
  InferEntity<typeof SessionEntity>,
  'expiryAnnouncedAt' | 'idempotencyKey' | 'requestKey'
> & {
  status: (typeof sessionStatuses)[number];
  readAt: Date;
};

/** What somebody on a page begins with: a session, or without one (null) what the page's address fills in. */
export type StartingValues = Pick<
  Session,
  'prefill' | 'partialAnswers' | 'provenance' | 'metadata' | 'createdAt' | 'readAt'
> &
  Partial<Pick<Session, 'callback' | 'context'>> & { id: string | null };
