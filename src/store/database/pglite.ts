import { existsSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setFlagsFromString } from 'node:v8';
import { createGunzip } from 'node:zlib';
import { PGlite } from '@electric-sql/pglite';
import { dataDir as emptyDatabase } from '@electric-sql/pglite-prepopulatedfs';
import { Migrator } from '@mikro-orm/migrations';
import { defineConfig, MikroORM } from '@mikro-orm/pglite';
import { unpackTar } from 'modern-tar/fs';
import { StartError } from '../../domain/errors/system-errors.ts';
import type { Log } from '../../telemetry/log.ts';
import { lockDataFolder } from './data-folder.ts';
import { type DatabaseFiles, type Engine, ormOptions, schemaDifference, timeTypes } from './engine.ts';
import { runMigrations } from './migrate.ts';
import { closeAfterStatements, createStatements, yieldBetweenStatements } from './pglite-statements.ts';
import type { Row } from './queries.ts';

/**
 * Opens the embedded database in `dataDir`, or in memory without one, optionally beginning with the
 * dump of another (`PGlite.dumpDataDir`).
 *
 * There is one session for everything: a query waits while a transaction is open, so work inside a
 * transaction must use nothing but that transaction.
 *
 * @throws StartError if the folder is in use, can't be written or holds no readable database.
 */
export async function openPglite(options: EmbeddedOptions): Promise<EmbeddedEngine> {
  const { dataDir, dump, log, onLockLost = stopWriting } = options;
  const folder = dataDir === undefined ? undefined : lockDataFolder(dataDir, onLockLost);
  const place = dataDir === undefined ? undefined : join(dataDir, 'pglite');
  const pglite = await openSession(place, dump).catch((error: unknown) => {
    folder?.release();
    throw new StartError(`The embedded database in ${dataDir} can't be opened.`, { cause: error });
  });

  const engine = await engineOn(pglite, log);
  return {
    ...engine,
    dump: () => pglite.dumpDataDir('none'),
    ...(place !== undefined && { files: filesOf(pglite, place) }),
    close: async () => {
      await engine.close();
      await closeAfterStatements(pglite);
      folder?.release();
    },
  };
}

/** Opens the database alone, in a folder or in memory, beginning with a dump or empty. */
export async function openSession(place: string | undefined, dump: Blob | undefined): Promise<PGlite> {
  keepWebAssemblyUnoptimized();
  const pglite = await openFolder(place, dump);
  // A segment that is used again has what was erased behind what is written anew.
  await pglite.query('set wal_recycle = off');
  yieldBetweenStatements(pglite);
  return pglite;
}

/** The engine on a database that is open, and stays so. Several can use the one session of it. */
export async function engineOn(pglite: PGlite, log: Log): Promise<Engine> {
  const orm = await MikroORM.init(
    defineConfig({
      ...ormOptions,
      extensions: [Migrator],
      dbName: 'embedded',
      driverOptions: { pglite },
    }),
  );

  const planned = createStatements(pglite);
  return {
    engine: 'pglite',
    em: orm.em,
    migrate: () => runMigrations(orm.migrator, log),
    schemaDifference: () => schemaDifference(orm),
    query: async (sql, params, prepared = false) =>
      prepared ? planned(sql, params) : (await pglite.query<Row>(sql, params)).rows,
    listen: async (channel, handler) => {
      const stop = await pglite.listen(channel, handler);
      return () => stop();
    },
    connections: () => undefined,
    close: () => orm.close(),
  };
}

function filesOf(pglite: PGlite, folder: string): DatabaseFiles {
  const segment = async (source: Pick<PGlite, 'query'>, expression: string) => {
    const { rows } = await source.query<{ name: string }>(`select ${expression} as name`);
    return rows[0]?.name ?? '';
  };
  return {
    folder,
    async checkpoint() {
      const begin = performance.now();
      await pglite.query('checkpoint');
      const waitedMs = performance.now() - begin;
      return {
        waitedMs,
        firstSegment: await segment(pglite, '(select redo_wal_file from pg_control_checkpoint())'),
      };
    },
    hold: (work) =>
      pglite.transaction(async (tx) =>
        work(await segment(tx, 'pg_walfile_name(pg_current_wal_insert_lsn())')),
      ),
  };
}

/**
 * Makes V8 run WebAssembly as its first, fast compiler made it. The optimizing compiler takes 600 MiB for a
 * single function of PostgreSQL, at every start, and saves 6 % of the CPU of a submission and a third of that
 * of a query that reads thousands of rows.
 *
 * This is `node --liftoff-only`, whose own flag does nothing once V8 runs. It holds for WebAssembly compiled
 * from then on.
 */
function keepWebAssemblyUnoptimized(): void {
  setFlagsFromString('--no-wasm-tier-up');
  setFlagsFromString('--no-wasm-dynamic-tiering');
}

/** A new database is a copy of an empty one, which takes half the time of making one. */
async function openFolder(place: string | undefined, dump: Blob | undefined): Promise<PGlite> {
  if (place === undefined) {
    return PGlite.create({ loadDataDir: dump ?? (await emptyDatabase()), parsers: rawTimes });
  }
  const isNew = !existsSync(join(place, 'PG_VERSION'));
  if (isNew && dump === undefined) await unpackEmptyDatabase(place);
  return PGlite.create({
    dataDir: place,
    ...(isNew && dump !== undefined && { loadDataDir: dump }),
    parsers: rawTimes,
  });
}

/**
 * Unpacks the empty database into a folder beside `place` and renames that at the end, so that a process
 * killed meanwhile leaves no half database. PGlite would unpack it in memory, for 110 MiB more.
 */
async function unpackEmptyDatabase(place: string): Promise<void> {
  const unpacked = `${place}.new`;
  rmSync(unpacked, { recursive: true, force: true });
  const archive = await emptyDatabase();
  await pipeline(
    Readable.fromWeb(archive.stream()),
    createGunzip(),
    unpackTar(unpacked, { dmode: 0o700, fmode: 0o600 }),
  );
  renameSync(unpacked, place);
}

/** Called by a timer, so that nothing catches it and the process ends. */
function stopWriting(): never {
  throw new Error('The lock on the data folder is gone; another process may use the folder');
}

const rawTimes = Object.fromEntries(timeTypes.map((type) => [type, (value: string) => value]));

export type EmbeddedOptions = {
  dataDir?: string;
  dump?: Blob;
  log: Log;
  /** Called if another process may use `dataDir` from now on; if absent, an error then ends the process. */
  onLockLost?: () => void;
};

export type EmbeddedEngine = Engine & {
  /** The whole data folder as a tar file, for `dump` above. */
  dump(): Promise<Blob>;
};
