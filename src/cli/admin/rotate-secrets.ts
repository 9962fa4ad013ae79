import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { readConfig } from '../../config.ts';
import { INSTALLATION } from '../../domain/audit.ts';
import { newSecretKey, parseSecretKey, SecretBox, type SecretKey } from '../../domain/secrets/secret-key.ts';
import { findSecretKey, requireKeyOf } from '../../secret-key.ts';
import { type AdminContext, adminEntry, refusal } from '../../services/admin/context.ts';
import { connectAdminSocket } from '../../services/admin/socket.ts';
import type { Queries } from '../../store/database/queries.ts';
import { findFact, SECRET_KEY_CHECK } from '../../store/installation.ts';
import { MailedLinkEntity } from '../../store/mail/mailed-links.ts';
import { OwnerSessionEntity } from '../../store/owners/owners.ts';
import { resealGroup, resealKeyCheck, sealedTables } from '../../store/sealed-secrets.ts';
import { RefusedError, type Terminal } from '../terminal.ts';
import { printTable } from './commands.ts';
import { openDirectly } from './open.ts';

/**
 * Makes a new SECRET_KEY, puts it into `secret.key` in DATA_DIR or prints it where SECRET_KEY is set, and takes back
 * what the former one gave. Says what is left to do.
 *
 * @throws RefusedError without `isConfirmed`, or while a service runs on the embedded database.
 */
export async function rotateSecrets(isConfirmed: boolean, terminal: Terminal): Promise<void> {
  const { env, print, note } = terminal;
  const config = readConfig(env);
  if (!isConfirmed || (await connectAdminSocket(config.dataDir)) !== undefined) {
    throw new RefusedError(STOP_FIRST);
  }
  await using opened = await openDirectly(terminal);
  const { database } = opened.context;
  const file = config.secretKey === undefined ? join(config.dataDir, 'secret.key') : undefined;
  const check = String(await findFact(database, SECRET_KEY_CHECK));
  if (file !== undefined && isInterrupted(file, check)) {
    renameSync(nextOf(file), file);
    note('Finished the interrupted change: the new key is in secret.key.');
    return;
  }
  const current = findSecretKey(config);
  requireKeyOf(check, new SecretBox(current, config.previousSecretKey));
  const text = newSecretKey();
  // Kept before anything is sealed with it.
  if (file === undefined) print(text);
  else keep(nextOf(file), text);
  const keys = { current, previous: config.previousSecretKey, next: parseSecretKey(text) };
  const done = await sealAnew(opened.context, keys);
  if (file !== undefined) renameSync(nextOf(file), file);

  note(`Encrypted the secrets of ${done.resealed} rows with a new key.`);
  if (done.unreadable > 0) note(`${done.unreadable} secrets open with no key and stay as they are.`);
  note(`Voided ${done.links} emailed links, and ended ${done.sessions} sessions of owners.`);
  note('Next steps:');
  if (file === undefined) {
    note('- Set SECRET_KEY to the key above for every instance, and remove SECRET_KEY_PREVIOUS.');
  }
  note('- Start the service. Links in earlier emails no longer work, including those that stop emails.');
  note('- Destroy backups from before, or keep them where only you can read them: they hold the former key,');
  note('  or secrets that it opens. Make a new one with --without-secrets.');
  if (done.webhooks.length === 0) return;
  note('- Anyone who also has a copy of the database can sign as these webhooks. Change their secrets:');
  note('  POST /v1/webhooks/:id/rotate-secret');
  printTable([['ID', 'PROJECT', 'HOST'], ...done.webhooks], note);
}

/** Whether a run before has sealed with the next key, and ended before it put that into its place. */
function isInterrupted(file: string, check: string): boolean {
  const next = nextOf(file);
  if (!existsSync(next)) return false;
  try {
    new SecretBox(parseSecretKey(readFileSync(next, 'utf8'))).open(check);
    return true;
  } catch {
    // It had sealed nothing yet.
    return false;
  }
}

function nextOf(file: string): string {
  return `${file}.next`;
}

/** Writes a file for its owner alone, onto the disk. */
function keep(file: string, text: string): void {
  const opened = openSync(file, 'w', 0o600);
  try {
    writeSync(opened, `${text}\n`);
    fsyncSync(opened);
  } finally {
    closeSync(opened);
  }
}

/**
 * Seals stored secrets with the key `next` in place of `current` (or the one before that, `previous`), ends the
 * sessions of all owners, and voids all emailed links, in one transaction. No instance may run meanwhile.
 *
 * @throws ConnectError while instances run.
 */
export async function sealAnew(context: AdminContext, keys: RotatedKeys): Promise<Rotated> {
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
const STOP_FIRST =
  'Stop every instance of the service first. They would still encrypt with the previous key. Then give --yes.';

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

type RotatedKeys = { current: SecretKey; previous: SecretKey | undefined; next: SecretKey };

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
