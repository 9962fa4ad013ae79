import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

/**
 * What Node is given to run the service, or its command line: the run's bundle, which is made for the first test that
 * asks, or else the source.
 */
export function program(name: keyof typeof sources): string[] {
  const bundle = process.env.TEST_BUNDLE;
  if (bundle === undefined) return [join(root, sources[name])];
  if (!existsSync(bundle))
    execFileSync(process.execPath, [join(import.meta.dirname, 'bundle-process.ts'), bundle]);
  return ['--enable-source-maps', join(bundle, `${name}.js`)];
}

const root = join(import.meta.dirname, '../..');
const sources = { main: 'src/main.ts', cli: 'src/cli/main.ts' };
