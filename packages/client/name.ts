/**
 * Writes the name of the package, which `package.json` alone decides, into its README and the examples.
 *
 *     npm pkg set name=@example/forms --prefix packages/client && node packages/client/name.ts
 */
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '../..');
const files = [
  'packages/client/README.md',
  ...globSync('examples/{browser,react}/*.{ts,tsx}', { cwd: root }),
];
const archives = 'examples/README.md';

/** The texts by their paths from the root, as they are with the name of the package. */
export function namedTexts(name: string): Map<string, { before: string; after: string }> {
  const read = (path: string) => readFileSync(join(root, path), 'utf8');
  const [, former = ''] = /from '(.+)\/form'/.exec(read('packages/client/README.md')) ?? [];
  const texts = files.map((path): [string, { before: string; after: string }] => {
    const before = read(path);
    return [path, { before, after: before.replaceAll(`from '${former}`, `from '${name}`) }];
  });
  const before = read(archives);
  const after = before.replaceAll(`./${archiveOf(former)}-*.tgz`, `./${archiveOf(name)}-*.tgz`);
  return new Map([...texts, [archives, { before, after }]]);
}

/** How `npm pack` calls the archive of a package. */
function archiveOf(name: string): string {
  return name.replace(/^@/, '').replace('/', '-');
}

if (import.meta.main) {
  const { name } = JSON.parse(readFileSync(join(import.meta.dirname, 'package.json'), 'utf8'));
  for (const [path, { after }] of namedTexts(name)) writeFileSync(join(root, path), after);
}
