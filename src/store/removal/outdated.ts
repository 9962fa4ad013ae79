import { deleteSome, type Queries } from '../database/queries.ts';
import { TODAY } from '../mail/mail.ts';

/** Removes up to `limit` rows of each kind that is of no use once its time is over. Returns how many, by table. */
export async function removeOutdated(db: Queries, limit: number): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const [table, { key, time, until = 'now()' }] of Object.entries(outdated)) {
    const rows = await deleteSome(db, table, { key, where: `${time} < ${until}`, orderBy: time, limit });
    counts[table] = rows.length;
  }
  return counts;
}

/** By table: its primary key, the column that says how old a row is, which has an index, and until when rows go. */
const outdated: Record<string, { key: string; time: string; until?: string }> = {
  autoresponses: { key: 'form_id, address', time: 'sent_at', until: "now() - interval '24 hours'" },
  idempotency_keys: { key: 'id', time: 'created_at', until: "now() - interval '24 hours'" },
  mail_allowances: { key: 'holder, kind, day', time: 'day', until: TODAY },
  mailed_links: { key: 'token_hash', time: 'expires_at' },
  owner_sessions: { key: 'token_hash', time: 'expires_at' },
  rate_limits: { key: 'key', time: 'resets_at' },
  used_sign_in_links: { key: 'token_hash', time: 'expires_at' },
};
