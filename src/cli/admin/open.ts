import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type Config, readConfig } from '../../config.ts';
import { type Admin, createAdmin, systemUser } from '../../services/admin/admin.ts';
import type { AdminContext } from '../../services/admin/context.ts';
import { finishRestore, refuseWhileRestoring } from '../../services/admin/folder-copy.ts';
import { connectAdminSocket } from '../../services/admin/socket.ts';
import { openUploadStore } from '../../services/uploads/s3-upload-store.ts';
import type { UploadStore } from '../../services/uploads/upload-store.ts';
import { AuditWriter } from '../../store/audit/audit-writer.ts';
import { machineClock } from '../../store/database/clock.ts';
import { type Database, openDatabase } from '../../store/database/database.ts';
import { migrationState, refuseNewerTables } from '../../store/database/migrate.ts';
import { removeDueFiles } from '../../store/removal/removals.ts';
import type { Log } from '../../telemetry/log.ts';
import { RefusedError, type Terminal } from '../terminal.ts';

/**
 * The admin of the installation that the settings name: on PostgreSQL directly; on the embedded database through
 * the service that has it open, or directly if none runs. The tables are left as they are.
 *
 * @throws RefusedError, ConfigError or StartError if it can't be had.
 */
export async function openAdmin(options: OpenOptions): Promise<OpenAdmin> {
  const { databaseUrl, dataDir } = readConfig(options.env);
  const admin = databaseUrl === undefined ? await connectAdminSocket(dataDir) : undefined;
  if (admin !== undefined) return { admin, [Symbol.asyncDispose]: async () => undefined };
  const opened = await openDirectly(options);
  return { admin: createAdmin(opened.context), [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose]() };
}

/**
 * What the admin of an installation works on; no service may have its embedded database open.
 *
 * @throws RefusedError, ConfigError or StartError if it can't be had.
 */
export async function openDirectly({ env, now, note }: OpenOptions): Promise<OpenContext> {
  const config = readConfig(env);
  const { databaseUrl, dataDir } = config;
  const direct = { config, uploads: openUploadStore(config, now), now, note };
  if (databaseUrl !== undefined) {
    return onDatabase(await openAsIs({ databaseUrl }), direct);
  }
  const folder = join(dataDir, 'database');
  refuseWhileRestoring(dataDir);
  finishRestore(dataDir);
  if (!hasDatabase(dataDir)) throw new RefusedError(noDatabase(dataDir));
  refuseOtherUsers(folder);
  note(`Opening the embedded database in ${dataDir}: no service runs on it.`);
  return onDatabase(await openAsIs({ dataDir: folder }), direct);
}

/** Opens a database for one command, with the tables that it has; it closes with its scope. */
export async function openAsIs(place: Place, log: Log = console): Promise<Database & AsyncDisposable> {
  const database = await openDatabase({ ...place, migrate: 'never', poolSize: 2, log });
  return { ...database, [Symbol.asyncDispose]: () => database.close() };
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
 * @throws RefusedError if the folder belongs to another user.
 */
export function refuseOtherUsers(folder: string): void {
  const { uid } = statSync(folder);
  const self = process.getuid?.();
  if (self === undefined || self === uid) return;
  throw new RefusedError(
    `${folder} belongs to the user ${uid}: run the command as that one (sudo -u '#${uid}').`,
  );
}

async function onDatabase(
  database: Database,
  { config, uploads, now: machine, note }: Direct,
): Promise<OpenContext> {
  const close = () => database.close();
  const now = machineClock(machine);
  try {
    const state = await migrationState(database);
    refuseNewerTables(state);
    if (state.pending.length > 0) {
      throw new RefusedError(
        'The tables are from another version. Run npm run cli -- admin migrate, or start the service.',
      );
    }
    await now.correct(database);
  } catch (error) {
    await close();
    throw error;
  }
  let isChanged = false;
  // The service notices a change within a second.
  const onChange = () => {
    isChanged = true;
  };
  const auditWriter = new AuditWriter({ database, now, log: console });
  const { retrySchedule: schedule } = config;
  return {
    context: { database, auditWriter, user: systemUser(), schedule, now, onChange },
    async [Symbol.asyncDispose]() {
      await auditWriter.close();
      // Perhaps no service runs that would do it.
      if (isChanged) await removeFiles(database, uploads, note);
      await close();
    },
  };
}

async function removeFiles(database: Database, uploads: UploadStore, note: Note): Promise<void> {
  for (let more = true; more; ) {
    const turn = await removeDueFiles(database, (id) => uploads.remove(id), FILES_AT_ONCE);
    more = turn.more;
    const [failure] = turn.failed;
    if (failure !== undefined) {
      note(`Some files could not be deleted. The service deletes them later: ${failure.error.message}`);
      return;
    }
  }
}

const FILES_AT_ONCE = 16;

type Place = { databaseUrl: string } | { dataDir: string };

type Direct = { config: Config; uploads: UploadStore; now: () => number; note: Note };

type Note = Terminal['note'];

type OpenAdmin = AsyncDisposable & { admin: Admin };

type OpenContext = AsyncDisposable & { context: AdminContext };

type OpenOptions = Pick<Terminal, 'env' | 'now' | 'note'>;
