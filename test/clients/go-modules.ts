import { readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/**
 * Writes into `folder` what has the `go` command take modules from Debian's packages, and from nowhere else. Their own
 * go.mod files name modules that Debian does not have, so an overlay empties them. Returns the flags for `go`.
 */
export function useDebianModules(folder: string): string[] {
  const files = readdirSync(DEBIAN, { recursive: true, encoding: 'utf8' });
  const modules = files.filter((file) => file.endsWith('/go.mod')).map(dirname);
  const lines = (write: (name: string) => string) => modules.map((name) => `\t${write(name)}\n`).join('');
  const required = lines((name) => `${name} v0.0.0`);
  const replaced = lines((name) => `${name} => ${join(DEBIAN, name)}`);
  const modfile = join(folder, 'debian.mod');
  const client = `module example.com/client\n\ngo 1.19\n\nrequire (\n${required})\n\nreplace (\n${replaced})\n`;
  writeFileSync(modfile, client);

  const replacement = modules.map((name) => {
    const empty = join(folder, `${name.replaceAll('/', '_')}.mod`);
    writeFileSync(empty, `module ${name}\n\ngo 1.19\n`);
    return [join(DEBIAN, name, 'go.mod'), empty];
  });
  const overlay = join(folder, 'overlay.json');
  writeFileSync(overlay, JSON.stringify({ Replace: Object.fromEntries(replacement) }));
  return ['-mod=mod', `-modfile=${modfile}`, `-overlay=${overlay}`];
}

/** Where Debian's packages of Go's libraries have their sources. */
const DEBIAN = '/usr/share/gocode/src';
