import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Config } from '../../config.ts';
import { SecretBox } from '../../domain/secrets/secret-box.ts';
import { findSecretKey, verifySecretKey } from '../../secret-key.ts';
import { openUploadStore } from '../../services/uploads/open-upload-store.ts';
import type { UploadStore } from '../../services/uploads/upload-store.ts';
import type { Database } from '../../store/database/database.ts';
import { migrationState, refuseNewerTables } from '../../store/database/migration-state.ts';
import { readEveryRow } from '../../store/database/verification.ts';
import { listUploads } from '../../store/uploads.ts';
import { RefusedError } from '../errors.ts';
import { inMib, type Progress } from './progress.ts';

/**
 * Reads everything that was restored: every row, every uploaded file, and whether the secret key fits. Says what
 * there is.
 *
 * @throws RefusedError or StartError if something can't be read or belongs to something else.
 */
export async function checkRestored(restored: Restored): Promise<void> {
  const { config, database, note, now, progress } = restored;
  const state = await migrationState(database);
  refuseNewerTables(state);
  const counts = await readEveryRow(database, (table, bytes) =>
    progress(() => `Reading the table ${table}: ${inMib(bytes)}`),
  ).catch((error: unknown) => {
    const reason = error instanceof Error ? error.message : String(error);
    throw new RefusedError(`The database is damaged: ${reason}.`, { cause: error });
  });
  if (config.secretKey !== undefined || existsSync(join(config.dataDir, 'secret.key'))) {
    const box = new SecretBox(findSecretKey(config), config.previousSecretKey);
    await verifySecretKey(database, box);
  } else note('Without a SECRET_KEY nothing was checked that it seals. The service needs the one it had.');
  const files = await checkUploads(restored);
  const rows = ['projects', 'forms', 'submissions', 'api_keys'].map(
    (table) => `${counts.get(table) ?? 0} ${table.replace('_', ' ')}`,
  );
  note(`Read ${rows.join(', ')} and ${files} files.`);
  if (state.pending.length > 0 && config.migrate)
    note('The start of the service will bring the tables up to date.');

  async function checkUploads({ database: db }: Restored): Promise<number> {
    const store = openUploadStore(config, now);
    let checked = 0;
    for (let after = ''; ; ) {
      const page = await listUploads(db, { after, limit: 100 });
      for (const { id, sha256, submissionId } of page) {
        const found = await digestOf(store, id);
        // What is removed loses its file before its row.
        if (found === undefined && submissionId !== null) note(`The file of the upload ${id} is missing.`);
        if (found !== undefined && found !== sha256)
          throw new RefusedError(`The file of the upload ${id} is damaged.`);
        checked += 1;
        progress(() => `Reading files: ${checked}`);
      }
      const last = page.at(-1);
      if (last === undefined) return checked;
      after = last.id;
    }
  }
}

async function digestOf(store: UploadStore, id: string): Promise<string | undefined> {
  const content = await store.get(id);
  if (content === undefined) return undefined;
  const hash = createHash('sha256');
  for await (const piece of content) hash.update(piece);
  return hash.digest('hex');
}

type Restored = {
  config: Config;
  database: Database;
  progress: Progress;
  note: (line: string) => void;
  now: () => number;
};
