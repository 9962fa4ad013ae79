import { INSTALLATION } from '../../domain/audit.ts';
import { SecretBox, type SecretKey } from '../../domain/secrets/secret-key.ts';
import type { Queries } from '../../store/database/queries.ts';
import { MailedLinkEntity } from '../../store/mail/mailed-links.ts';
import { OwnerSessionEntity } from '../../store/owners/owner-sessions.ts';
import { resealGroup, resealKeyCheck, sealedTables } from '../../store/sealed-secrets.ts';
import { type AdminContext, adminEntry, refusal } from './context.ts';

/**
 * Seals stored secrets with the key `next` in place of `current` (or the one before that, `previous`), ends the
 * sessions of all owners, and voids all mailed links, in one transaction. No instance may run meanwhile.
 *
 * @throws ConnectError while instances run.
 */
export async function rotateSecrets(context: AdminContext, keys: RotatedKeys): Promise<Rotated> {
  const { current, previous, next } = keys;
  const { database } = context;
  return database.transaction(async (tx) => {
    if (database.engine === 'postgres') await refuseWhileOthersRun(tx);
    // What a change of the key that is not finished has left.
    if (previous !== undefined) await resealAll(tx, new SecretBox(current, previous));
    const after = new SecretBox(next, current);
    const counts = await resealAll(tx, after);
    await resealKeyCheck(tx, after);
    const links = await tx.write((em) => em.nativeDelete(MailedLinkEntity, {}));
    const sessions = await tx.write((em) => em.nativeDelete(OwnerSessionEntity, {}));
    const webhooks = await tx.select(
      `select w.id, p.name as project, substring(w.url from '//([^/]*)') as host
       from webhooks w join projects p on p.id = w.project_id order by w.id`,
    );
    const entry = { action: 'installation.secrets_rotated', projectId: INSTALLATION } as const;
    await context.auditWriter.store(tx, adminEntry(context, entry));
    const called = webhooks.map(({ id, project, host }) => [String(id), String(project), String(host)]);
    return { ...counts, links, sessions, webhooks: called };
  });
}

/** Each instance has a connection on which it listens, and commands have none. */
async function refuseWhileOthersRun(tx: Queries): Promise<void> {
  const [row] = await tx.select(
    `select count(*)::int as others from pg_stat_activity
     where datname = current_database() and query ilike 'listen %'`,
  );
  if (Number(row?.others) > 0) throw refusal(STOP_FIRST);
}

/** What rotating asks for. */
export const STOP_FIRST =
  'Stop every instance of the service first: they would seal with the former key. Then say --yes.';

async function resealAll(tx: Queries, box: SecretBox) {
  const counts = { resealed: 0, unreadable: 0 };
  for (const table of sealedTables) {
    let after: string | null = '';
    while (after !== null) {
      const group = await resealGroup(tx, box, { table, after, limit: GROUP });
      counts.resealed += group.resealed;
      counts.unreadable += group.unreadable;
      after = group.next;
    }
  }
  return counts;
}

const GROUP = 200;

export type RotatedKeys = { current: SecretKey; previous: SecretKey | undefined; next: SecretKey };

type Rotated = {
  /** Rows with secrets that are sealed with the new key. */
  resealed: number;
  /** Secrets that none of the keys opens, which stay as they were. */
  unreadable: number;
  /** Links that are void: to confirm, to take over, to sign in. */
  links: number;
  /** Sessions of owners that ended. */
  sessions: number;
  /** The id, the project and the host of each webhook. */
  webhooks: string[][];
};
