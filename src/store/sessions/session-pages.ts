import { MAX_PAGE_BYTES, type Page, type Queries } from '../database/queries.ts';
import { type Session, sessionColumns, statusNow, toSession } from './session-table.ts';

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

/** About what a session takes in a message. Metadata may be numbers throughout: `1,` takes 11 bytes there. */
function bytesOf({ prefill, metadata, partialAnswers }: Session): number {
  return Buffer.byteLength(JSON.stringify([prefill, partialAnswers])) + 6 * JSON.stringify(metadata).length;
}

/** A session holds up to half a megabyte, which should not be read in vain by the hundred. */
const MAX_READ_AT_ONCE = 8;
