import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

/**
 * The package as its users have it: packed to an archive, and installed from that in an empty folder. What it depends
 * on is packed and installed likewise, so that no registry is asked.
 */
export async function installPackage({ react = false } = {}): Promise<InstalledPackage> {
  const folder = await mkdtemp(join(tmpdir(), 'package-'));
  const archives = join(folder, 'archives');
  await mkdir(archives);
  const pack = (path: string, ...options: string[]) =>
    npm(path, 'pack', '--pack-destination', archives, ...options);
  // As `prepack` does, in a folder of its own: files of tests run at once.
  const built = join(folder, 'built');
  await cp(source, built, { recursive: true, filter: (path) => !/\/(src|dist)$/.test(path) });
  await promisify(execFile)(process.execPath, [join(source, 'build.ts'), join(built, 'dist')]);
  await pack(built, '--ignore-scripts');
  const needed = [...dependencies, ...(react ? ofReact : [])];
  await Promise.all(needed.map((name) => pack(join(root, 'node_modules', name), '--ignore-scripts')));
  await writeFile(join(folder, 'package.json'), '{ "private": true, "type": "module" }');
  const files = (await readdir(archives)).map((name) => join(archives, name));
  await npm(folder, 'install', '--offline', '--no-audit', '--no-fund', '--ignore-scripts', ...files);
  const { name } = JSON.parse(await readFile(join(source, 'package.json'), 'utf8'));
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

function npm(cwd: string, ...args: string[]) {
  const PATH = `${join(root, 'node_modules/.bin')}:${process.env.PATH}`;
  return promisify(execFile)('npm', args, { cwd, env: { ...process.env, PATH } });
}

const root = join(import.meta.dirname, '../..');
const source = join(root, 'packages/client');
const dependencies = ['@bufbuild/protobuf', '@connectrpc/connect', '@connectrpc/connect-web'];
const ofReact = ['react', 'react-dom', 'scheduler'];

export type InstalledPackage = AsyncDisposable & {
  folder: string;
  /** What the package is called, in `package.json` alone. */
  name: string;
  /** Writes a file, in which `'PACKAGE` stands for the package's name, and returns its path. */
  write: (path: string, text: string) => Promise<string>;
  /** Copies what is in a folder of the repository. */
  copy: (path: string) => Promise<void>;
};
