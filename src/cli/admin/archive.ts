import { createReadStream, createWriteStream, existsSync } from 'node:fs';
import { open, readFile, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';
import { packTar, type TarSource, unpackTar } from 'modern-tar/fs';
import { z } from 'zod';
import manifest from '../../../package.json' with { type: 'json' };
import type { Config } from '../../config.ts';
import { RefusedError } from '../terminal.ts';

/**
 * Writes a gzipped tar archive that only its owner may read. The file is whole or not there.
 *
 * @throws RefusedError if there is a file of that name.
 */
export async function writeArchive(
  file: string,
  sources: TarSource[],
  { isWanted = () => true, onBytes }: ArchiveOptions,
): Promise<{ bytes: number }> {
  refuseExisting(file);
  const partial = `${file}.partial`;
  try {
    await pipeline(
      packTar(sources, { filter: isWanted }),
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
  return { bytes: (await stat(file)).size };
}

/**
 * Unpacks an archive into a folder: its files and folders whose first name is one of `names`, readable by their
 * owner alone.
 *
 * @throws RefusedError if it is damaged or cut off.
 */
export async function readArchive(
  file: string,
  folder: string,
  { names, onBytes }: { names: string[]; onBytes: (bytes: number) => void },
): Promise<void> {
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
          (type === 'file' || type === 'directory') && names.includes(name.split('/', 1)[0] ?? ''),
      }),
    );
  } catch (error) {
    if (error instanceof Error && 'code' in error && /^E[A-Z]+$/.test(String(error.code))) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    throw new RefusedError(`${file} is damaged or no backup: ${reason}.`, { cause: error });
  }
}

/** What the names in a backup begin with. */
export const archiveNames = ['backup.json', 'database', 'database.dump', 'uploads', 'secret.key'];

/** Throws before work is done in vain. */
export function refuseExisting(file: string): void {
  if (existsSync(file)) throw new RefusedError(`${file} exists already: name another file.`);
}

/** What an archive begins with: what made it, and when. */
export function factsOf({ config, madeAt }: { config: Config; madeAt: string }): TarSource {
  const facts = { format: 1, version: manifest.version, madeAt, uploads: config.uploads === undefined };
  return {
    type: 'content',
    content: `${JSON.stringify(facts, null, 2)}\n`,
    target: 'backup.json',
    mode: 0o600,
  };
}

/**
 * The same of an archive that was unpacked into a folder.
 *
 * @throws RefusedError if it is none.
 */
export async function readFacts(file: string, folder: string): Promise<z.output<typeof backupFacts>> {
  const text = await readFile(join(folder, 'backup.json'), 'utf8').catch(() => undefined);
  const facts = text === undefined ? undefined : backupFacts.safeParse(JSON.parse(text)).data;
  if (facts === undefined) throw new RefusedError(`${file} is no backup that this version can read.`);
  return facts;
}

const backupFacts = z.object({ format: z.literal(1), version: z.string(), madeAt: z.string() });

/** What is to be kept with an archive, for whoever has made one. */
export function besideArchive({ uploads }: Config, hasKey: boolean): string[] {
  return [
    hasKey
      ? 'The archive holds all answers and the secret key: keep it where nobody else can read it.'
      : 'The archive holds all answers. It does not hold the secret key, which is needed with it: keep that as well, elsewhere.',
    ...(uploads === undefined
      ? []
      : [
          'The files are in the bucket of UPLOADS_URL and not in the archive: it has to keep versions of what is deleted.',
        ]),
  ];
}

function counting(onBytes: (bytes: number) => void): Transform {
  let bytes = 0;
  return new Transform({
    transform(chunk: Uint8Array, _encoding, done) {
      bytes += chunk.length;
      onBytes(bytes);
      done(null, chunk);
    },
  });
}

async function flush(path: string): Promise<void> {
  await using file = await open(path, 'r');
  await file.sync();
}

type ArchiveOptions = {
  /** Whether a file or folder is to be packed, by its path on the disk. */
  isWanted?: (path: string) => boolean;
  /** Called with the bytes packed so far, before they are compressed. */
  onBytes: (bytes: number) => void;
};
