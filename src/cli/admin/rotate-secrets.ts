import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { readConfig } from '../../config.ts';
import { newSecretKey, parseSecretKey, SecretBox } from '../../domain/secrets/secret-key.ts';
import { findSecretKey, requireKeyOf } from '../../secret-key.ts';
import { rotateSecrets as rotate, STOP_FIRST } from '../../services/admin/rotate-secrets.ts';
import { connectAdminSocket } from '../../services/admin/socket.ts';
import { findFact, SECRET_KEY_CHECK } from '../../store/installation.ts';
import { RefusedError, type Terminal } from '../terminal.ts';
import { printTable } from './keys.ts';
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
    note('Finished what was interrupted: the new key is in secret.key.');
    return;
  }
  const current = findSecretKey(config);
  requireKeyOf(check, new SecretBox(current, config.previousSecretKey));
  const text = newSecretKey();
  // Kept before anything is sealed with it.
  if (file === undefined) print(text);
  else keep(nextOf(file), text);
  const keys = { current, previous: config.previousSecretKey, next: parseSecretKey(text) };
  const done = await rotate(opened.context, keys);
  if (file !== undefined) renameSync(nextOf(file), file);

  note(`Sealed the secrets of ${done.resealed} rows with a new key.`);
  if (done.unreadable > 0) note(`${done.unreadable} secrets open with no key and stay as they are.`);
  note(`Voided ${done.links} mailed links, and ended ${done.sessions} sessions of owners.`);
  note('What is left to do:');
  if (file === undefined) {
    note('- Set SECRET_KEY to the key above for every instance, and remove SECRET_KEY_PREVIOUS.');
  }
  note('- Start the service. Links of mails sent before are refused, those that stop mail as well.');
  note('- Destroy backups from before, or keep them where only you can read them: they hold the former key,');
  note('  or secrets that it opens. Make a new one with --without-secrets.');
  if (done.webhooks.length === 0) return;
  note('- Whoever has a copy of the database, too, can sign as these webhooks. Change their secrets:');
  note('  POST /v1/webhooks/:id/rotate');
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
