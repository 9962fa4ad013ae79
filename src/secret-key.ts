import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Config } from './config.ts';
import { errorMessage, hasCode, StartError } from './domain/errors/system-errors.ts';
import { newSecretKey, parseSecretKey, type SecretBox, type SecretKey } from './domain/secrets/secret-key.ts';
import { makeDataFolder } from './store/database/data-folder.ts';
import type { Database } from './store/database/database.ts';
import { agreeOn, SECRET_KEY_CHECK } from './store/installation.ts';

/**
 * The key that stored secrets and emailed links depend on: SECRET_KEY, or with the embedded database a
 * key made once and kept in DATA_DIR, readable by this user only.
 *
 * Throws a `StartError` if there is none, or the file can't be read or written.
 */
export function findSecretKey(config: Config): SecretKey {
  if (config.secretKey !== undefined) return config.secretKey;
  if (config.databaseUrl !== undefined) {
    throw new StartError(
      'SECRET_KEY: needed with DATABASE_URL, the same in every process. Make one with: openssl rand -hex 32',
    );
  }
  const file = join(config.dataDir, 'secret.key');
  makeDataFolder(config.dataDir);
  try {
    return parseSecretKey(readFileSync(file, 'utf8'));
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return makeSecretKey(file);
    throw new StartError(`DATA_DIR: can't read ${file}: ${errorMessage(error)}`);
  }
}

/**
 * Checks that the database's secrets are sealed with a key of `box`; on a new database, stores what later
 * starts check theirs against. Throws a `StartError` otherwise, since webhooks could not be signed.
 */
export async function verifySecretKey(database: Database, box: SecretBox): Promise<void> {
  requireKeyOf(await agreeOn(database, SECRET_KEY_CHECK, box.seal(PROBE)), box);
}

/** Throws a `StartError` if what `verifySecretKey` has stored was sealed with another key. */
export function requireKeyOf(sealed: string, box: SecretBox): void {
  try {
    box.open(sealed);
  } catch {
    throw new StartError(
      `SECRET_KEY: not the key of this database's secrets, which would be lost. If you have changed it, give the ` +
        'former one as SECRET_KEY_PREVIOUS.',
    );
  }
}

function makeSecretKey(file: string): SecretKey {
  const text = newSecretKey();
  try {
    writeFileSync(file, `${text}\n`, { mode: 0o600, flag: 'wx' });
  } catch (error) {
    throw new StartError(`DATA_DIR: can't write ${file}: ${errorMessage(error)}`);
  }
  return parseSecretKey(text);
}

const PROBE = 'headless-form-service';
