import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { readConfig } from '../../config.ts';
import { type Admin, AdminError, createAdmin } from '../../services/admin/admin.ts';
import { connectAdminSocket } from '../../services/admin/socket.ts';
import { type Database, openDatabase } from '../../store/database/database.ts';
import { sqlState } from '../../store/database/faults.ts';

/**
 * The admin of the installation that the settings name: on PostgreSQL directly; on the embedded database through
 * the service that has it open, or directly if none runs. The tables are left as they are.
 *
 * @throws AdminError, ConfigError or StartError if it can't be had.
 */
export async function openAdmin({ env, now, note }: OpenOptions): Promise<OpenAdmin> {
  const { databaseUrl, dataDir } = readConfig(env);
  if (databaseUrl !== undefined) return onDatabase(await openDatabase({ databaseUrl, ...direct }), now);
  const folder = join(dataDir, 'database');
  const admin = await connectAdminSocket(dataDir);
  if (admin !== undefined) return { admin, [Symbol.asyncDispose]: async () => undefined };
  if (!existsSync(join(folder, 'pglite', 'PG_VERSION'))) {
    throw new AdminError(
      `There is no database in ${dataDir}. Set DATA_DIR or DATABASE_URL as the service has them.`,
    );
  }
  refuseOtherUsers(folder);
  note(`Opening the embedded database in ${dataDir}: no service runs on it.`);
  return onDatabase(await openDatabase({ dataDir: folder, ...direct }), now);
}

/** What another user writes there, such as root, the service could not open again. */
function refuseOtherUsers(folder: string): void {
  const { uid } = statSync(folder);
  const self = process.getuid?.();
  if (self === undefined || self === uid) return;
  throw new AdminError(
    `${folder} belongs to the user ${uid}: run the command as that one (sudo -u '#${uid}').`,
  );
}

async function onDatabase(database: Database, now: () => number): Promise<OpenAdmin> {
  const close = () => database.close();
  try {
    await database.select('select from revoked_keys limit 1');
  } catch (error) {
    await close();
    if (sqlState(error) !== UNDEFINED_TABLE) throw error;
    throw new AdminError(
      'The database has no tables of this version. Start the service first, which makes them.',
    );
  }
  // The service notices a change within a second.
  const onChange = () => undefined;
  return { admin: createAdmin({ database, now, onChange }), [Symbol.asyncDispose]: close };
}

const UNDEFINED_TABLE = '42P01';

const direct = { migrate: false, poolSize: 2, log: console };

type OpenAdmin = AsyncDisposable & { admin: Admin };

type OpenOptions = {
  env: NodeJS.ProcessEnv;
  now: () => number;
  /** Says what goes on. */
  note: (line: string) => void;
};
