import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { PGlite } from '@electric-sql/pglite';
import { dataDir as emptyDatabase } from '@electric-sql/pglite-prepopulatedfs';
import { Migrator } from '@mikro-orm/migrations';
import { defineConfig, MikroORM } from '@mikro-orm/pglite';
import { lockDataFolder } from './data-folder.ts';
import type { Engine } from './engine.ts';
import { entities } from './entities.ts';
import { StartError } from './faults.ts';
import { ormOptions, schemaDifference } from './orm-options.ts';
import { createStatements } from './pglite-statements.ts';
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
  const { dataDir, dump, onLockLost = stopWriting } = options;
  const folder = dataDir === undefined ? undefined : lockDataFolder(dataDir, onLockLost);
  const place = dataDir === undefined ? undefined : join(dataDir, 'pglite');
  const isNew = place === undefined || !existsSync(join(place, 'PG_VERSION'));
  const pglite = await PGlite.create({
    ...(place !== undefined && { dataDir: place }),
    // A copy of an empty database is there in half the time that making one takes.
    ...(isNew && { loadDataDir: dump ?? (await emptyDatabase()) }),
    parsers: rawTimes,
  }).catch((error: unknown) => {
    folder?.release();
    throw new StartError(`The embedded database in ${dataDir} can't be opened.`, { cause: error });
  });

  const orm = await MikroORM.init(
    defineConfig({
      ...ormOptions,
      entities,
      extensions: [Migrator],
      dbName: 'embedded',
      driverOptions: { pglite },
    }),
  );

  const planned = createStatements(pglite);
  return {
    name: 'pglite',
    em: orm.em,
    migrate: async () => {
      await orm.migrator.up();
    },
    schemaDifference: () => schemaDifference(orm),
    query: async (sql, params, prepared = false) =>
      prepared ? planned(sql, params) : (await pglite.query<Row>(sql, params)).rows,
    listen: async (channel, handler) => {
      const stop = await pglite.listen(channel, handler);
      return () => stop();
    },
    dump: () => pglite.dumpDataDir('none'),
    close: async () => {
      await orm.close();
      // It takes no turn by itself, and would cut into whatever runs.
      await pglite._runExclusiveTransaction(() => pglite.close());
      folder?.release();
    },
  };
}

/** Called by a timer, so that nothing catches it and the process ends. */
function stopWriting(): never {
  throw new Error('The lock on the data folder is gone; another process may use the folder');
}

/** Times stay text, as the ORM expects and as the other engine gives them: date, timestamp, timestamptz. */
const rawTimes = Object.fromEntries([1082, 1114, 1184].map((type) => [type, (value: string) => value]));

export type EmbeddedOptions = {
  dataDir?: string;
  dump?: Blob;
  /** Called if another process may use `dataDir` from now on; if absent, an error then ends the process. */
  onLockLost?: () => void;
};

export type EmbeddedEngine = Engine & {
  /** The whole data folder as a tar file, for `dump` above. */
  dump(): Promise<Blob>;
};
