import { join } from 'node:path';
import { readConfig } from '../../config.ts';
import { connectAdminSocket } from '../../services/admin/socket.ts';
import { migrationState, refuseNewerTables } from '../../store/database/migrate.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Terminal } from '../terminal.ts';
import { hasDatabase, openAsIs, refuseOtherUsers } from './open.ts';

/**
 * Brings the tables up to date, for services that run with MIGRATE=off: on a server while they run, and on the
 * embedded database while none does. What is new is made.
 *
 * @throws StartError if they are of a newer version.
 */
export async function migrate({ env, note }: Terminal): Promise<void> {
  const { databaseUrl, dataDir } = readConfig(env);
  if (databaseUrl === undefined) {
    if ((await connectAdminSocket(dataDir)) !== undefined) {
      note('Nothing to do: the service that runs has its tables up to date.');
      return;
    }
    if (hasDatabase(dataDir)) refuseOtherUsers(join(dataDir, 'database'));
  }
  const place = databaseUrl === undefined ? { dataDir: join(dataDir, 'database') } : { databaseUrl };
  await using database = await openAsIs(place, progressLog(note));
  const state = await migrationState(database);
  refuseNewerTables(state);
  if (state.pending.length === 0) {
    note('Nothing to do: the tables are up to date.');
    return;
  }
  note(`Running ${state.pending.length === 1 ? '1 migration' : `${state.pending.length} migrations`}.`);
  await database.migrate();
  for (const name of state.pending) note(`Done: ${name}`);
}

/** Migrations that take longer than a second are logged; here the lines are for a person. */
function progressLog(note: (line: string) => void): Log {
  const write = (facts: unknown, text?: string) => {
    const { migration = '', seconds = 0 } = typeof facts === 'object' && facts !== null ? { ...facts } : {};
    note(`${text ?? String(facts)} ${migration} (${seconds} s)`);
  };
  return { debug: () => undefined, info: write, warn: write, error: write };
}
