import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

/**
 * What Node is given to run a program: the run's bundle, which is made for the first test that asks, or else the source.
 * Reading the bundle's source maps takes a fifth of a start: set TEST_SOURCE_MAPS to have stack traces name the source.
 */
export function program(name: keyof typeof sources): string[] {
  const bundle = process.env.TEST_BUNDLE;
  if (bundle === undefined) return [join(root, sources[name])];
  if (!existsSync(bundle))
    execFileSync(process.execPath, [join(import.meta.dirname, 'bundle-process.ts'), bundle]);
  const file = join(bundle, `${name}.js`);
  return process.env.TEST_SOURCE_MAPS ? ['--enable-source-maps', file] : [file];
}

const root = join(import.meta.dirname, '../..');
/** Those of the service, and one that tests kill while it stores submissions. */
export const sources = {
  main: 'src/main.ts',
  cli: 'src/cli/main.ts',
  writing: 'test/store/database/writing-process.ts',
};
