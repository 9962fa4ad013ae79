import { existsSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { createGunzip } from 'node:zlib';
import { messages, PGlite, protocol, types } from '@electric-sql/pglite';
import { dataDir as emptyDatabase } from '@electric-sql/pglite-prepopulatedfs';
import { Migrator } from '@mikro-orm/migrations';
import { defineConfig, MikroORM } from '@mikro-orm/pglite';
import { unpackTar } from 'modern-tar/fs';
import { StartError } from '../../domain/errors/system-errors.ts';
import type { Log } from '../../telemetry/log.ts';
import { lockDataFolder } from './data-folder.ts';
import { type DatabaseFiles, type Engine, ormOptions, schemaDifference, timeTypes } from './engine.ts';
import { runMigrations } from './migrate.ts';
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
  throw new Error('The lock on the data folder was lost. Another process may use the folder');
}

const rawTimes = Object.fromEntries(timeTypes.map((type) => [type, (value: string) => value]));

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

/**
 * Makes what runs statements that the embedded database keeps planned.
 *
 * PGlite's own `query` plans its text each time, which takes several times as long as storing a
 * submission does, so this speaks the protocol below it: one message to prepare, one for each run. Without
 * it a submission that comes alone takes 4.7 ms in place of 1.1, one of eight at once 6.3 in place of 3.4, and
 * reading by id falls to 0.63 of its rate; 64 submissions at once share one statement, and gain little.
 */
function createStatements(pglite: PGlite): (sql: string, params: unknown[]) => Promise<Row[]> {
  const known = new Map<string, Statement>();

  async function prepare(sql: string): Promise<Statement> {
    prepared += 1;
    const name = `statement_${prepared}`;
    const answer = await exchange(pglite, [
      serialize.parse({ name, text: sql }),
      serialize.describe({ type: 'S', name }),
    ]);
    const described = answer.find((message) => message instanceof messages.ParameterDescriptionMessage);
    const row = answer.find((message) => message instanceof messages.RowDescriptionMessage);
    const statement = { name, parameters: described?.dataTypeIDs ?? [], columns: row?.fields ?? [] };
    known.set(sql, statement);
    return statement;
  }

  const run = async (sql: string, params: unknown[]) => {
    const { name, parameters, columns } = known.get(sql) ?? (await prepare(sql));
    const values = params.map((value, index) => textOf(pglite, value, parameters[index] ?? TEXT));
    const answer = await exchange(pglite, [serialize.bind({ statement: name, values }), serialize.execute()]);
    return answer
      .filter((message) => message instanceof messages.DataRowMessage)
      .map(({ fields }) =>
        Object.fromEntries(
          columns.map(({ name: column, dataTypeID }, index) => [
            column,
            types.parseType(fields[index] ?? null, dataTypeID, pglite.parsers),
          ]),
        ),
      );
  };
  // The same two locks that `query` waits for: that of a transaction, and that of a statement.
  return (sql, params) =>
    pglite._runExclusiveTransaction(() => pglite._runExclusiveQuery(() => run(sql, params)));
}

/**
 * Lets the event loop run between statements. Each runs within a turn of it and its answer is a microtask, so that
 * callers whose next statement follows at once would keep everything else waiting until their last one.
 */
function yieldBetweenStatements(pglite: PGlite): void {
  const runExclusive = pglite._runExclusiveQuery.bind(pglite);
  let sliceBegan: number | undefined;
  pglite._runExclusiveQuery = (statement) =>
    runExclusive(async () => {
      if (sliceBegan !== undefined && performance.now() - sliceBegan > TIME_SLICE_MS)
        await yieldToEventLoop();
      if (sliceBegan === undefined) {
        sliceBegan = performance.now();
        setImmediate(() => {
          sliceBegan = undefined;
        });
      }
      return statement();
    });
}

/** How long statements may hold the event loop, and the last of them beyond it. */
const TIME_SLICE_MS = 10;

/**
 * Closes the database after all that runs or waits: PGlite's own `close` waits for none of it, and would cut into it.
 */
function closeAfterStatements(pglite: PGlite): Promise<void> {
  return pglite._runExclusiveTransaction(() => pglite.close());
}

/** Sends messages and reads the answer to its end. Throws the database's error, or that it is closed. */
function exchange(pglite: PGlite, parts: Uint8Array[]) {
  // Below `query` nobody asks, and what is closed never answers.
  if (!pglite.ready) throw new Error('The embedded database is closed');
  return pglite.execProtocolStream(Buffer.concat([...parts, serialize.sync()]));
}

function textOf({ serializers }: PGlite, value: unknown, type: number): string | null {
  if (value === null || value === undefined) return null;
  if (typeof value === 'string') return value;
  const write = serializers[type];
  if (write === undefined) throw new TypeError(`A parameter of the type ${type} is to be given as text`);
  return write(value);
}

/** Statements prepared so far: names are those of a session, which several engines can share. */
let prepared = 0;

const { serialize } = protocol;
const { TEXT } = types;

type Statement = { name: string; parameters: number[]; columns: { name: string; dataTypeID: number }[] };
