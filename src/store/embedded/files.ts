import { existsSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setFlagsFromString } from 'node:v8';
import { createGunzip } from 'node:zlib';
import { PGlite } from '@electric-sql/pglite';
import { dataDir as emptyDatabase } from '@electric-sql/pglite-prepopulatedfs';
import { unpackTar } from 'modern-tar/fs';
import { timeTypes } from '../database/queries.ts';

/** Opens the database in a folder, or in memory without one, beginning with a dump or empty. */
export async function openFiles({ place, dump }: DatabasePlace): Promise<PGlite> {
  keepWebAssemblyUnoptimized();
  const pglite = await (place === undefined ? openMemory(dump) : openFolder(place, dump));
  // A segment that is used again has what was erased behind what is written anew.
  await pglite.query('set wal_recycle = off');
  return pglite;
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

async function openMemory(dump: Blob | undefined): Promise<PGlite> {
  return PGlite.create({ ...settings, loadDataDir: dump ?? (await emptyDatabase()) });
}

/** A new database is a copy of an empty one, which takes half the time of making one. */
async function openFolder(place: string, dump: Blob | undefined): Promise<PGlite> {
  const isNew = !existsSync(join(place, 'PG_VERSION'));
  if (isNew && dump === undefined) await unpackEmptyDatabase(place);
  return PGlite.create({
    ...settings,
    dataDir: place,
    ...(isNew && dump !== undefined && { loadDataDir: dump }),
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

const settings = {
  parsers: Object.fromEntries(timeTypes.map((type) => [type, (value: string) => value])),
  // PostgreSQL touches all its buffers at the start: its default of 128 MB took 65 MiB more (test/memory.test.ts), and was
  // no faster. Pages that don't fit are in the system's cache of files.
  startParams: [...PGlite.defaultStartParams, '-c', 'shared_buffers=64MB'],
};

/** `place` is the folder; without it, the database is in memory. `dump` is that of another to begin with. */
export type DatabasePlace = { place: string | undefined; dump: Blob | undefined };
