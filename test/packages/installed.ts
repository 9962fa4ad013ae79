import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { preparedPackage } from '../support/prepared.ts';

/**
 * The package as its users have it, in a folder of its own. The packages beside it are the run's: see
 * `prepare-package.ts`.
 */
export async function installPackage(): Promise<InstalledPackage> {
  const installed = await preparedPackage();
  const folder = await mkdtemp(join(tmpdir(), 'package-'));
  await symlink(join(installed.folder, 'node_modules'), join(folder, 'node_modules'));
  await cp(join(installed.folder, 'package.json'), join(folder, 'package.json'));
  const { name } = JSON.parse(await readFile(join(root, 'packages/client/package.json'), 'utf8'));
  return {
    folder,
    name,
    async write(path, text) {
      await writeFile(join(folder, path), text.replaceAll("'PACKAGE", `'${name}`));
      return join(folder, path);
    },
    copy: (path) => cp(join(root, path), folder, { recursive: true }),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}

const root = join(import.meta.dirname, '../..');

export type InstalledPackage = AsyncDisposable & {
  folder: string;
  /** What the package is called, in `package.json` alone. */
  name: string;
  /** Writes a file, in which `'PACKAGE` stands for the package's name, and returns its path. */
  write: (path: string, text: string) => Promise<string>;
  /** Copies what is in a folder of the repository. */
  copy: (path: string) => Promise<void>;
};
