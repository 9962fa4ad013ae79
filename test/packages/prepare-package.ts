import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { PreparedPackage } from '../support/prepared.ts';

/**
 * Packs the package that others install to an archive, and installs it from that in an empty folder. What it depends on
 * is packed and installed likewise, so that no registry is asked; so is React.
 */
export async function preparePackage(): Promise<PreparedPackage> {
  const folder = await mkdtemp(join(tmpdir(), 'package-'));
  // As `prepack` does, in a folder of its own: tests change nothing beside the sources.
  const [built, archives] = [join(folder, 'built'), join(folder, 'archives')];
  await cp(source, built, { recursive: true, filter: (path) => !/\/(src|dist)$/.test(path) });
  await promisify(execFile)(process.execPath, [join(source, 'build.ts'), join(built, 'dist')]);
  await mkdir(archives);
  const packed = [built, ...needed.map((name) => join(root, 'node_modules', name))];
  await npm(folder, 'pack', '--ignore-scripts', '--pack-destination', archives, ...packed);
  await writeFile(join(folder, 'package.json'), '{ "private": true, "type": "module" }');
  const files = (await readdir(archives)).map((name) => join(archives, name));
  await npm(folder, 'install', '--offline', '--no-audit', '--no-fund', '--ignore-scripts', ...files);
  return { folder };
}

function npm(cwd: string, ...args: string[]) {
  const PATH = `${join(root, 'node_modules/.bin')}:${process.env.PATH}`;
  return promisify(execFile)('npm', args, { cwd, env: { ...process.env, PATH } });
}

const root = join(import.meta.dirname, '../..');
const source = join(root, 'packages/client');
const needed = ['@bufbuild/protobuf', '@connectrpc/connect', '@connectrpc/connect-web'].concat([
  'react',
  'react-dom',
  'scheduler',
]);
