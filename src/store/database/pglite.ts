import { statfsSync } from 'node:fs';
import { join } from 'node:path';
import { Migrator } from '@mikro-orm/migrations';
import { defineConfig, MikroORM } from '@mikro-orm/pglite';
import { PGliteDialect, type PGliteDialectConfig, PGliteDriver, PostgresAdapter } from 'kysely';
import { errorMessage, StartError } from '../../domain/errors/system-errors.ts';
import type { Log } from '../../telemetry/log.ts';
import { type EmbeddedSession, openEmbeddedSession, type SessionTransaction } from '../embedded/session.ts';
import { lockDataFolder } from './data-folder.ts';
import { type DatabaseFiles, type Engine, ormOptions, schemaDifference } from './engine.ts';
import { isDiskFull } from './faults.ts';
import { runMigrations } from './migrate.ts';

/**
 * Opens the embedded database in `dataDir`, or in memory without one, optionally beginning with the
 * dump of another (`PGlite.dumpDataDir`).
 *
 * @throws StartError if the folder is in use, can't be written or holds no readable database.
 */
export async function openPglite(options: EmbeddedOptions): Promise<EmbeddedEngine> {
  const { dataDir, dump, log, onLockLost } = options;
  const folder = dataDir === undefined ? undefined : lockDataFolder(dataDir, onLockLost);
  const place = dataDir === undefined ? undefined : join(dataDir, 'pglite');
  const session = await openEmbeddedSession({ place, dump }).catch((error: unknown) => {
    folder?.release();
    throw new StartError(`The embedded database in ${dataDir} can't be opened: ${whyNot(error, dataDir)}`, {
      cause: error,
    });
  });

  const engine = await engineOn(session, log);
  return {
    ...engine,
    dump: () => session.dump(),
    ...(place !== undefined && { files: filesOf(session, place) }),
    close: async () => {
      await engine.close();
      await session.close();
      folder?.release();
    },
  };
}

/** PGlite says only that it failed, also where it needs space to begin: a database on a full disk is not broken. */
function whyNot(error: unknown, dataDir: string | undefined): string {
  const { bavail = Number.POSITIVE_INFINITY, bsize = 1 } = dataDir === undefined ? {} : statfsSync(dataDir);
  const isFull = isDiskFull(error) || bavail * bsize < LEAST_FREE_BYTES;
  return isFull ? 'the disk is full. Free some space; nothing is lost.' : `${errorMessage(error)}.`;
}

/** A segment of the write-ahead log, which is made at once. */
const LEAST_FREE_BYTES = 16 * 1024 * 1024;

/** The engine on a database that is open, and stays so. Several can use the one session of it. */
export async function engineOn(session: EmbeddedSession, log: Log): Promise<Engine> {
  const orm = await MikroORM.init(
    defineConfig({
      ...ormOptions,
      extensions: [Migrator],
      dbName: 'embedded',
      driverOptions: dialectOn(session),
    }),
  );

  return {
    engine: 'pglite',
    em: orm.em,
    migrate: () => runMigrations(orm.migrator, log),
    schemaDifference: () => schemaDifference(orm),
    query: async (sql, params, prepared = false) => (await session.query(sql, params, { prepared })).rows,
    listen: (channel, handler) => session.listen(channel, handler),
    connections: () => undefined,
    close: () => orm.close(),
  };
}

/**
 * Each statement and each transaction of the ORM has a connection of its own: the session knows which waits for which.
 * With PGlite's, which is one, a statement would begin only when the service has taken the answer to the last one.
 */
function dialectOn(session: EmbeddedSession): PGliteDialect {
  // It uses of PGlite what a session has.
  const config = { pglite: session } as unknown as PGliteDialectConfig;
  class SessionDriver extends PGliteDriver {
    override async acquireConnection() {
      const own = new PGliteDriver(config);
      await own.init();
      return own.acquireConnection();
    }
    /** Who opened the session closes it. */
    override async destroy() {}
  }
  return Object.assign(new PGliteDialect(config), {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => new SessionDriver(config),
  });
}

function filesOf(session: EmbeddedSession, folder: string): DatabaseFiles {
  const segment = async (source: SessionTransaction, expression: string) => {
    const { rows } = await source.query(`select ${expression} as name`);
    const name = rows[0]?.name;
    return typeof name === 'string' ? name : '';
  };
  return {
    folder,
    async checkpoint() {
      const begin = performance.now();
      await session.query('checkpoint');
      const waitedMs = performance.now() - begin;
      return {
        waitedMs,
        firstSegment: await segment(session, '(select redo_wal_file from pg_control_checkpoint())'),
      };
    },
    hold: (work) =>
      session.transaction(async (tx) =>
        work(await segment(tx, 'pg_walfile_name(pg_current_wal_insert_lsn())')),
      ),
  };
}

export type EmbeddedOptions = {
  /** Holds the database; without it, the database is in memory. */
  dataDir?: string;
  /** The dump of a database to begin with. */
  dump?: Blob;
  log: Log;
  /** Called if another process may use `dataDir` from now on; if absent, an error then ends the process. */
  onLockLost?: () => void;
};

export type EmbeddedEngine = Engine & {
  /** The whole data folder as a tar file, for `dump` above. */
  dump(): Promise<Blob>;
};
