import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type Config, readConfig } from '../../config.ts';
import { type Admin, createAdmin, systemUser } from '../../services/admin/admin.ts';
import { AdminError } from '../../services/admin/context.ts';
import { connectAdminSocket } from '../../services/admin/socket.ts';
import { openUploadStore } from '../../services/uploads/open-upload-store.ts';
import type { UploadStore } from '../../services/uploads/upload-store.ts';
import { createAuditWriter } from '../../store/audit/audit-writer.ts';
import { type Database, openDatabase } from '../../store/database/database.ts';
import { migrationState, refuseNewerTables } from '../../store/database/migration-state.ts';

/**
 * The admin of the installation that the settings name: on PostgreSQL directly; on the embedded database through
 * the service that has it open, or directly if none runs. The tables are left as they are.
 *
 * @throws AdminError, ConfigError or StartError if it can't be had.
 */
export async function openAdmin({ env, now, note }: OpenOptions): Promise<OpenAdmin> {
  const config = readConfig(env);
  const { databaseUrl, dataDir } = config;
  const direct = { config, uploads: openUploadStore(config, now), now };
  if (databaseUrl !== undefined) {
    return onDatabase(await openDatabase({ databaseUrl, ...opening }), direct);
  }
  const folder = join(dataDir, 'database');
  const admin = await connectAdminSocket(dataDir);
  if (admin !== undefined) return { admin, [Symbol.asyncDispose]: async () => undefined };
  if (!hasDatabase(dataDir)) throw new AdminError(noDatabase(dataDir));
  refuseOtherUsers(folder);
  note(`Opening the embedded database in ${dataDir}: no service runs on it.`);
  return onDatabase(await openDatabase({ dataDir: folder, ...opening }), direct);
}

/** Whether there is an embedded database in a data folder. */
export function hasDatabase(dataDir: string): boolean {
  return existsSync(join(dataDir, 'database', 'pglite', 'PG_VERSION'));
}

/** Says that there is none. */
export function noDatabase(dataDir: string): string {
  return `There is no database in ${dataDir}. Set DATA_DIR or DATABASE_URL as the service has them.`;
}

/**
 * What another user writes there, such as root, the service could not open again.
 *
 * @throws AdminError if the folder belongs to another user.
 */
export function refuseOtherUsers(folder: string): void {
  const { uid } = statSync(folder);
  const self = process.getuid?.();
  if (self === undefined || self === uid) return;
  throw new AdminError(
    `${folder} belongs to the user ${uid}: run the command as that one (sudo -u '#${uid}').`,
  );
}

async function onDatabase(database: Database, { config, uploads, now }: Direct): Promise<OpenAdmin> {
  const close = () => database.close();
  try {
    const state = await migrationState(database);
    refuseNewerTables(state);
    if (state.pending.length > 0) {
      throw new AdminError(
        'The tables are not those of this version. Run npm run cli -- admin migrate, or start the service.',
      );
    }
  } catch (error) {
    await close();
    throw error;
  }
  // The service notices a change within a second.
  const onChange = () => undefined;
  const auditWriter = createAuditWriter({ database, now, log: console });
  const { retrySchedule: schedule } = config;
  return {
    admin: createAdmin({ database, uploads, auditWriter, user: systemUser(), schedule, now, onChange }),
    async [Symbol.asyncDispose]() {
      await auditWriter.close();
      await close();
    },
  };
}

const opening = { migrate: 'never' as const, poolSize: 2, log: console };

type Direct = { config: Config; uploads: UploadStore; now: () => number };

type OpenAdmin = AsyncDisposable & { admin: Admin };

type OpenOptions = {
  env: NodeJS.ProcessEnv;
  now: () => number;
  /** Says what goes on. */
  note: (line: string) => void;
};
