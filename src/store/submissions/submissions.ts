import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import type { StoredOrigin } from '../../domain/answers/provenance.ts';
import type { VerifiedRespondent } from '../../domain/sessions/respondent.ts';
import { id, type JsonObject, json, keysWithout, rowsOf, text, time } from '../database/columns.ts';
import type { Queries } from '../database/queries.ts';
import { createLoader } from '../database/queries.ts';

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
    /** Where the answers come from; null for submissions that are older than the record. */
    provenance: json<StoredOrigin[]>().strictNullable(),
    metadata: json<JsonObject>(),
    status: p.enum(['accepted', 'spam', 'replaced']).columnType('text'),
    idempotencyKey: text().strictNullable(),
    /** Digest of the request that used the idempotency key, so that its reuse for another is found. */
    requestFingerprint: text().strictNullable(),
    createdAt: time(),
    /** Who answered with a code emailed to their address. */
    respondent: json<VerifiedRespondent>().strictNullable(),
    /** Their mailbox as `mailboxOf` gives it, where the form takes one submission of each. */
    respondentKey: text().strictNullable(),
    /** The submission that it corrects. */
    replaces: id().strictNullable(),
    /** The submission that corrects it; `replaced` unless it is spam. */
    replacedBy: id().strictNullable(),
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
    {
      name: 'submissions_respondent_unique',
      properties: ['formId', 'respondentKey'],
      where: 'respondent_key is not null',
    },
  ],
});

export type Submission = InferEntity<typeof SubmissionEntity>;

/** How submissions are read. */
const submissionRows = rowsOf(SubmissionEntity);

/** What a submission is shown by. Pages have no more of it: each column takes its part of the time of a list. */
export const shownKeys = keysWithout(SubmissionEntity, [
  'projectId',
  'idempotencyKey',
  'requestFingerprint',
  'respondentKey',
]);

export type ShownSubmission = Pick<Submission, (typeof shownKeys)[number]>;

/**
 * How many submissions a form holds, spread over slots: each group insert adds to one slot, so that
 * processes seldom wait for each other's row lock. The count is the sum over the slots.
 */
export const CounterEntity = defineEntity({
  name: 'Counter',
  tableName: 'form_counters',
  properties: {
    formId: id().primary(),
    slot: p.smallint().primary(),
    /** A slot may be negative: a deletion subtracts from any one. */
    accepted: p.bigint('number').default(0),
    spam: p.bigint('number').default(0),
    /** Of forms that hold something that came without a key. */
    projectId: id().strictNullable(),
    /** What of that they hold, in bytes. */
    keylessBytes: p.bigint('number').default(0),
  },
  indexes: [{ name: 'form_counters_keyless', properties: ['projectId'], where: 'keyless_bytes <> 0' }],
});

/** Finds a submission of a project. */
export async function findSubmission(
  db: Queries,
  projectId: string,
  submissionId: string,
): Promise<Submission | null> {
  const submission = await findAnySubmission(db, submissionId);
  return submission?.projectId === projectId ? submission : null;
}

/** Whether a form that takes one submission of each mailbox has that of this one. */
export async function isRespondentKnown(
  db: Queries,
  formId: string,
  respondentKey: string,
): Promise<boolean> {
  return (await db.read((em) => em.count(SubmissionEntity, { formId, respondentKey }))) > 0;
}

/** Finds a submission of any project. */
export const findAnySubmission = createLoader(async (db, ids) => {
  const rows = await db.select(
    `select ${submissionRows.columns} from submissions where id = any($1)`,
    [ids],
    { prepared: true },
  );
  return rows.map(submissionRows.map);
});

/**
 * The first submission with an idempotency key, if there is one: what a call that is refused by now may
 * have been answered before.
 *
 * It is written to, so that the answer is as durable as the first one: a read may be ahead of a standby.
 */
export async function findRepeatedSubmission(
  db: Queries,
  formId: string,
  idempotencyKey: string,
): Promise<{ id: string; requestFingerprint: string | null } | null> {
  const [row] = await db.execute(
    `update submissions set request_fingerprint = request_fingerprint
     where form_id = $1 and idempotency_key = $2 returning ${repeatedRows.columns}`,
    [formId, idempotencyKey],
    { repeatable: true },
  );
  return row === undefined ? null : repeatedRows.map(row);
}

const repeatedRows = rowsOf(SubmissionEntity, ['id', 'requestFingerprint']);
