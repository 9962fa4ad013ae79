/**
 * Builds the package into `dist`: ES modules, CommonJS and types.
 *
 *     node packages/client/build.ts [folder]
 *
 * The form is made of the service's own sources in `src`. What only the service needs of them is left out: schemas of
 * definitions, JSON Schemas, samples, words of pages. Patterns are left to the service: the matcher is larger than all else.
 */
import { execFileSync } from 'node:child_process';
import { globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { rolldown } from 'rolldown';
import { withoutServerParts } from './without-server-parts.ts';

const here = import.meta.dirname;
const root = join(here, '../..');
const dist = process.argv[2] ?? join(here, 'dist');
const entries = ['index', 'form', 'react', 'webhooks'];

rmSync(dist, { recursive: true, force: true });
await buildCode();
buildTypes();

async function buildCode(): Promise<void> {
  const built = await rolldown({
    input: Object.fromEntries(entries.map((name) => [name, join(here, 'src', `${name}.ts`)])),
    external: [/^@bufbuild\//, /^@connectrpc\//, 'react', 'zod', /^node:/],
    plugins: [withoutServerParts],
    platform: 'neutral',
    treeshake: { moduleSideEffects: false, propertyReadSideEffects: false },
    logLevel: 'warn',
  });
  for (const [format, ending] of [
    ['esm', 'js'],
    ['cjs', 'cjs'],
  ] as const) {
    const { output } = await built.write({
      dir: dist,
      format,
      entryFileNames: `[name].${ending}`,
      chunkFileNames: `chunks/[name].${ending}`,
      comments: false,
    });
    for (const file of output) {
      const [needed] = (file.type === 'chunk' && /["'](?:zod|node:\w+)["']/.exec(file.code)) || [];
      if (needed) throw new Error(`${file.fileName} needs ${needed}`);
    }
  }
  await built.close();
}

/** Types are those of this package alone and of the generated messages. */
function buildTypes(): void {
  const folder = join(dist, '.types');
  const options = [
    '--declaration',
    '--emitDeclarationOnly',
    '--noEmit',
    'false',
    '--removeComments',
    'false',
  ];
  const tsc = join(root, 'node_modules/.bin/tsc');
  execFileSync(tsc, ['-p', here, ...options, '--rootDir', root, '--outDir', folder], { stdio: 'inherit' });
  const own = 'packages/client/src/';
  const files = globSync(`${own}**/*.d.ts`, { cwd: folder }).map((path) => [
    path.slice(own.length),
    join(folder, path),
  ]);
  const generated = globSync('gen/{google,headlessforms}/**/*.d.ts', { cwd: root })
    .filter((path) => !path.includes('internal'))
    .map((path) => [path, join(root, path)]);
  for (const [path = '', source = ''] of [...files, ...generated]) {
    const text = readFileSync(source, 'utf8')
      .replaceAll("'../../../gen/", "'./gen/")
      .replace(/(from '[^']*)\.ts'/g, "$1.js'");
    if (path.startsWith('form/words') || path.startsWith('form/draft')) continue;
    write(path, text);
    write(
      path.replace(/\.d\.ts$/, '.d.cts'),
      text.replace(/((?:from|import\() ?["']\.[^"']*)\.js(["'])/g, '$1.cjs$2'),
    );
  }
  rmSync(folder, { recursive: true });
}

function write(path: string, text: string): void {
  mkdirSync(dirname(join(dist, path)), { recursive: true });
  writeFileSync(join(dist, path), text);
}
