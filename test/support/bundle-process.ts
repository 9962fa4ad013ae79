/**
 * Bundles the programs of `programs.ts` with their packages into a folder, and compiles them: a process that starts from there
 * reads twenty files instead of a thousand, none of them as TypeScript.
 *
 *     node test/support/bundle-process.ts FOLDER
 */
import { existsSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { enableCompileCache, flushCompileCache } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type Plugin, rolldown } from 'rolldown';
import { sources } from './programs.ts';

const root = join(import.meta.dirname, '../..');
const folder = process.argv[2] ?? '';
const own = `${folder}.${process.pid}`;
const compiled = process.env.NODE_COMPILE_CACHE ?? join(folder, 'compiled');
mkdirSync(own);
writeFileSync(join(own, 'package.json'), '{ "type": "module" }');
symlinkSync(join(root, 'node_modules'), join(own, 'node_modules'));

/** Files beside a module are found beside its source, programs of threads and what was compiled in the bundle. */
const places: Plugin = {
  name: 'places',
  transform(code, id) {
    const ofThreads = code.replaceAll(
      /new Worker\(new URL\('\.\/(\w+)\.ts', import\.meta\.url\)/g,
      (_all, name) => {
        const reference = this.emitFile({ type: 'chunk', id: join(id, '..', `${name}.ts`) });
        return `new Worker(new URL(import.meta.ROLLDOWN_FILE_URL_${reference})`;
      },
    );
    const url = JSON.stringify(pathToFileURL(id).href);
    const located = ofThreads
      .replaceAll(/\bimport\.meta\.url\b/g, url)
      .replaceAll('enableCompileCache()', `enableCompileCache(${JSON.stringify(compiled)})`);
    return located === code ? undefined : { code: located, map: null };
  },
};
const bundle = await rolldown({
  cwd: root,
  input: { ...sources, app: 'src/app.ts' },
  platform: 'node',
  transform: { target: 'esnext' },
  // Its WebAssembly and the empty database are files beside it.
  external: [/^@electric-sql\//],
  plugins: [places],
  logLevel: 'warn',
});
await bundle.write({ dir: own, format: 'esm', sourcemap: true, keepNames: true });
await bundle.close();
try {
  renameSync(own, folder);
} catch (error) {
  // Another process of the run was faster.
  if (!existsSync(folder)) throw error;
  rmSync(own, { recursive: true });
}
enableCompileCache(compiled);
await import(join(folder, 'app.js'));
flushCompileCache();
process.exit(0);
