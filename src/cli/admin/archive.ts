import { createReadStream, createWriteStream, existsSync } from 'node:fs';
import { readFile, rename, rm, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';
import { packTar, type TarSource, unpackTar } from 'modern-tar/fs';
import { z } from 'zod';
import manifest from '../../../package.json' with { type: 'json' };
import { errorMessage } from '../../domain/errors/system-errors.ts';
import { flush } from '../../services/uploads/upload-store.ts';
import { inMib, RefusedError } from '../terminal.ts';

/**
 * Writes a backup: a gzipped tar archive that only its owner may read, with what made it and when, a database, the
 * files, and perhaps the secret key. It is whole or not there.
 *
 * @throws RefusedError if there is a file of that name.
 */
export async function writeArchive(file: string, contents: Contents, onBytes: OnBytes): Promise<void> {
  refuseExisting(file);
  const partial = `${file}.partial`;
  try {
    await pipeline(
      packTar(sourcesOf(contents), { filter: (path) => basename(path) !== 'spool' }),
      counting(onBytes),
      // Files of a database shrink to a fraction at every level, and the first takes a third of the usual one's time.
      createGzip({ level: 1 }),
      createWriteStream(partial, { mode: 0o600, flags: 'w' }),
    );
    await flush(partial);
    await rename(partial, file);
  } catch (error) {
    await rm(partial, { force: true });
    throw error;
  }
}

function sourcesOf({ madeAt, database, uploads, secretKey }: Contents): TarSource[] {
  const facts = { format: 1, version: manifest.version, madeAt, uploads: uploads !== undefined };
  const content = `${JSON.stringify(facts, null, 2)}\n`;
  return [
    { type: 'content', content, target: 'backup.json', mode: 0o600 },
    database,
    ...(uploads !== undefined && existsSync(uploads)
      ? [{ type: 'directory' as const, source: uploads, target: 'uploads' }]
      : []),
    ...(secretKey === undefined ? [] : [{ type: 'file' as const, source: secretKey, target: 'secret.key' }]),
  ];
}

/** Says what was backed up, of how many bytes, and what is to be kept with it. */
export async function noteArchive(
  file: string,
  { madeAt, uploads, secretKey }: Contents,
  { bytes, isOfRunning, waitedMs }: { bytes: number; isOfRunning: boolean; waitedMs?: number | undefined },
  note: (line: string) => void,
): Promise<void> {
  const { size } = await stat(file);
  const waited = waitedMs === undefined ? '' : ` Writes waited for ${(waitedMs / 1000).toFixed(2)} s.`;
  note(`Backed up ${inMib(bytes)} to ${file} (${inMib(size)}).${waited}`);
  if (isOfRunning) note(`It holds everything that was acknowledged before ${madeAt}.`);
  note(
    secretKey === undefined
      ? 'The archive holds all answers. It does not hold the secret key, which you need to restore it. Keep the key elsewhere.'
      : 'The archive holds all answers and the secret key. Keep it where nobody else can read it.',
  );
  if (uploads === undefined)
    note(
      'Uploads are in the bucket of UPLOADS_URL, not in the archive. Turn on versioning of the bucket, so that it keeps deleted files.',
    );
}

/**
 * Unpacks an archive into a folder: the files and folders of a backup, readable by their owner alone.
 *
 * @throws RefusedError if it is damaged or cut off.
 */
export async function readArchive(file: string, folder: string, onBytes: OnBytes): Promise<void> {
  try {
    await pipeline(
      createReadStream(file),
      counting(onBytes),
      createGunzip(),
      unpackTar(folder, {
        strict: true,
        dmode: 0o700,
        fmode: 0o600,
        filter: ({ name, type }) =>
          (type === 'file' || type === 'directory') && archiveNames.includes(name.split('/', 1)[0] ?? ''),
      }),
    );
  } catch (error) {
    if (error instanceof Error && 'code' in error && /^E[A-Z]+$/.test(String(error.code))) throw error;
    throw new RefusedError(`${file} is damaged or not a backup: ${errorMessage(error)}.`, { cause: error });
  }
}

/** What the names in a backup begin with. */
export const archiveNames = ['backup.json', 'database', 'database.dump', 'uploads', 'secret.key'];

/** Throws before work is done in vain. */
export function refuseExisting(file: string): void {
  if (existsSync(file)) throw new RefusedError(`${file} already exists: name another file.`);
}

/**
 * What an archive that was unpacked into a folder begins with: what made it, and when.
 *
 * @throws RefusedError if it is none.
 */
export async function readFacts(file: string, folder: string): Promise<z.output<typeof backupFacts>> {
  const text = await readFile(join(folder, 'backup.json'), 'utf8').catch(() => undefined);
  const facts = text === undefined ? undefined : backupFacts.safeParse(JSON.parse(text)).data;
  if (facts === undefined) throw new RefusedError(`${file} is not a backup that this version can read.`);
  return facts;
}

const backupFacts = z.object({ format: z.literal(1), version: z.string(), madeAt: z.string() });

function counting(onBytes: OnBytes): Transform {
  let bytes = 0;
  return new Transform({
    transform(chunk: Uint8Array, _encoding, done) {
      bytes += chunk.length;
      onBytes(bytes);
      done(null, chunk);
    },
  });
}

/** What goes into an archive. */
type Contents = {
  madeAt: string;
  /** Its files, or its dump. */
  database: TarSource;
  /** The folder of the files; undefined: they are elsewhere. */
  uploads: string | undefined;
  /** The file of the key; undefined: it is not to be in the archive. */
  secretKey?: string | undefined;
};

/** Called with the bytes that were read so far, as they are in the archive or before they are compressed. */
type OnBytes = (bytes: number) => void;
