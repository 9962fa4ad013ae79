/**
 * Bundles the scripts of the pages into `gen/pages`, each page's into one file, as a part of `npm run generate`.
 */
import { join } from 'node:path';
import { rolldown } from 'rolldown';

const root = join(import.meta.dirname, '..');

/** `embed` is loaded by other sites, whose tag of it is no module. */
const formats = { page: 'esm', owner: 'esm', new: 'esm', docs: 'esm', embed: 'iife' } as const;

for (const [name, format] of Object.entries(formats)) {
  const bundle = await rolldown({
    input: join(root, `src/pages/browser/${name}.ts`),
    // Only a form that asks for a drawn signature loads it.
    external: ['signature_pad'],
    platform: 'browser',
    logLevel: 'warn',
  });
  const { output } = await bundle.write({
    file: join(root, `gen/pages/${name}.js`),
    format,
    paths: { signature_pad: './libraries/signature_pad.js' },
    minify: true,
    comments: false,
  });
  await bundle.close();
  if (output.length !== 1) throw new Error(`${name}.ts makes ${output.length} files`);
}
