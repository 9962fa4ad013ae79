import { type InferEntity, raw } from '@mikro-orm/core';
import { insertOf } from '../database/columns.ts';
import { DatabaseUnavailable, MAX_CONFLICTS } from '../database/faults.ts';
import {
  createLoader,
  MAX_PAGE_BYTES,
  type Page,
  type Queries,
  type Transaction,
} from '../database/queries.ts';
import { addStoredBytes } from '../keyless-storage.ts';
import { type Session, SessionEntity, sessionColumns, statusNow, toSession } from './session-table.ts';

/**
 * Stores a session that lasts `expiresIn` seconds from now, by the database's clock. If there is a session with the same
 * key of a request, that one is returned instead.
 */
export async function insertSession(db: Queries, { idempotency, ...session }: NewSession): Promise<Session> {
  const { key: requestKey, fingerprint: requestFingerprint } = idempotency ?? {};
  for (let tries = 1; ; tries += 1) {
    const [row] = await db.execute(
      `with stored as (${insertion.sql} on conflict do nothing returning *), counted as (${addStoredBytes})
       select ${sessionColumns} from stored`,
      insertion.values({ ...session, requestKey, requestFingerprint }),
      // Carried out twice, it conflicts with itself, and finds what it has stored.
      { repeatable: true },
    );
    if (row !== undefined) return toSession(row);
    const stored = await findStoredSession(db, 'id = $1 or request_key = $2', [session.id, requestKey]);
    if (stored !== null) return stored;
    if (tries === MAX_CONFLICTS) throw new DatabaseUnavailable();
  }
}

const insertion = insertOf(SessionEntity, (parameter) => ({
  createdAt: 'now()',
  expiresAt: `now() + make_interval(secs => ${parameter('expiresIn')})`,
  expiryAnnouncedAt: `case when ${parameter('keylessBytes')}::int is not null then now() end`,
}));

/** The session that was made by a request with this key. */
export function findRequestedSession(db: Queries, key: string): Promise<Session | null> {
  return findStoredSession(db, 'request_key = $1', [key]);
}

/** The session of a form that the version before made with an idempotency key. */
export function findFormerSession(
  db: Queries,
  formId: string,
  idempotencyKey: string,
): Promise<Session | null> {
  return findStoredSession(db, 'form_id = $1 and idempotency_key = $2', [formId, idempotencyKey]);
}

/**
 * Finds a session that a request has made. It is written to, so that the answer is as durable as the first one: a read
 * may be ahead of a synchronous standby.
 */
async function findStoredSession(db: Queries, where: string, params: unknown[]): Promise<Session | null> {
  const [row] = await db.execute(
    `with written as (
       update sessions set request_fingerprint = request_fingerprint where ${where} returning *
     ) select ${sessionColumns} from written`,
    params,
    { repeatable: true },
  );
  return row === undefined ? null : toSession(row);
}

/** Finds a session by its id alone, which is the credential of the hosted page. */
export const findAnySession = createLoader(async (db, ids) => {
  const rows = await db.select(`select ${sessionColumns} from sessions where id = any($1)`, [ids], {
    prepared: true,
  });
  return rows.map(toSession);
});

/** Finds a session of a project. */
export async function findSession(
  db: Queries,
  projectId: string,
  sessionId: string,
): Promise<Session | null> {
  const session = await findAnySession(db, sessionId);
  return session?.projectId === projectId ? session : null;
}

/**
 * Lists up to `limit` of a form's sessions, newest first, from the one after `after` on, as many as the bytes of
 * a page allow, but at least one.
 *
 * The form is one the caller may read: nothing here asks for its project.
 */
export async function listSessions(
  db: Queries,
  formId: string,
  { status, after, limit }: { status?: Session['status']; after?: Session; limit: number },
): Promise<Page<Session>> {
  const items: Session[] = [];
  for (let bytes = 0, last = after; ; last = items.at(-1)) {
    const count = Math.min(limit + 1 - items.length, MAX_READ_AT_ONCE);
    const rows = await db.select(
      `select ${sessionColumns} from sessions
       where form_id = $1 and (created_at, id) < ($2::timestamptz, $3) and ($4::text is null or ${statusNow} = $4)
       order by created_at desc, id desc limit $5`,
      [formId, last?.createdAt.toISOString() ?? 'infinity', last?.id ?? '', status, count],
    );
    for (const session of rows.map(toSession)) {
      bytes += bytesOf(session);
      const full = items.length === limit || (bytes > MAX_PAGE_BYTES && items.length > 0);
      if (full) return { items, nextCursor: items.at(-1)?.id ?? null };
      items.push(session);
    }
    if (rows.length < count) return { items, nextCursor: null };
  }
}

/**
 * Counts a form's open sessions by the version that they keep: of the versions with most of them, and of the sessions
 * that end first, so that the work has a bound.
 */
export async function countOpenSessions(
  db: Queries,
  formId: string,
): Promise<{ versionId: string; count: number }[]> {
  const rows = await db.select(
    `select version_id, count(*)::int as count from (
       select version_id from sessions where form_id = $1 and expires_at > now() and ${statusNow} = 'open'
       order by expires_at limit ${MAX_COUNTED}
     ) as sessions group by version_id order by count desc limit ${MAX_VERSIONS}`,
    [formId],
  );
  return rows.map(({ version_id: versionId, count }) => ({
    versionId: String(versionId),
    count: Number(count),
  }));
}

const MAX_COUNTED = 100_000;

/** The definition of each is read. */
const MAX_VERSIONS = 20;

/** About what a session takes in a message. Metadata may be numbers throughout: `1,` takes 11 bytes there. */
function bytesOf({ prefill, metadata, partialAnswers, context }: Session): number {
  return (
    Buffer.byteLength(JSON.stringify([prefill, partialAnswers, context])) +
    6 * JSON.stringify(metadata).length
  );
}

/** A session holds up to half a megabyte, which should not be read in vain by the hundred. */
const MAX_READ_AT_ONCE = 8;

/** Finds a session and keeps others from changing it until the transaction ends. */
export async function lockSession(tx: Transaction, sessionId: string): Promise<Session | null> {
  const [row] = await tx.select(`select ${sessionColumns} from sessions where id = $1 for update`, [
    sessionId,
  ]);
  return row === undefined ? null : toSession(row);
}

/** Changes a session that the caller has locked and found open; what is not named stays. */
export async function updateSession(
  tx: Transaction,
  sessionId: string,
  change: SessionChange,
): Promise<Session> {
  await tx.write((em) => em.nativeUpdate(SessionEntity, { id: sessionId }, change));
  const [row] = await tx.select(`select ${sessionColumns} from sessions where id = $1`, [sessionId]);
  return toSession(row ?? {});
}

/**
 * Ends a session that the caller has locked and found open: cancelled, or declined with a reason. The caller stores
 * its event with it.
 */
export async function endLockedSession(
  tx: Transaction,
  sessionId: string,
  declined?: { reason: string },
): Promise<Session> {
  const [row] = await tx.execute(
    `with ended as (
       update sessions set cancelled_at = now(), expiry_announced_at = now(),
         declined_at = case when $2::text is not null then now() end, decline_reason = nullif($2, '')
       where id = $1 returning *
     ) select ${sessionColumns} from ended`,
    [sessionId, declined?.reason],
  );
  return toSession(row ?? {});
}

/** Notes that the hosted page was opened; the first time stays. */
export async function markSessionOpened(db: Queries, sessionId: string): Promise<void> {
  const change = { openedAt: raw('now()') };
  await db.write((em) => em.nativeUpdate(SessionEntity, { id: sessionId, openedAt: null }, change));
}

/**
 * Takes up to `limit` sessions that have expired unannounced, the longest expired first, and marks them
 * as announced: the caller stores their events in the same transaction. Sweeps of other processes skip
 * the ones taken here.
 */
export async function takeExpiredSessions(tx: Transaction, limit: number): Promise<Session[]> {
  const rows = await tx.execute(
    `with taken as (
       update sessions set expiry_announced_at = now() where id in (
         select id from sessions
         where expires_at <= now() and submitted_at is null and expiry_announced_at is null
         order by expires_at limit $1 for update skip locked
       ) returning *
     ) select ${sessionColumns} from taken`,
    [limit],
  );
  return rows.map(toSession);
}

/** `expiresIn` is in seconds. */
export type NewSession = Pick<Session, 'id' | 'projectId' | 'formId' | 'versionId' | 'prefill' | 'metadata'> &
  Partial<Omit<InferEntity<typeof SessionEntity>, 'createdAt' | 'expiresAt'>> & {
    expiresIn: number;
    idempotency?: { key: string; fingerprint: string } | undefined;
  };

export type SessionChange = Partial<Omit<InferEntity<typeof SessionEntity>, 'id' | 'projectId' | 'formId'>>;
