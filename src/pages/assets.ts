import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire, stripTypeScriptTypes } from 'node:module';
import { pathToFileURL } from 'node:url';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import type { Request, Response } from 'express';

/**
 * The files that the pages load, by their path below the service's root.
 *
 * The path carries a hash over all of them, so that browsers may keep them for ever. The modules of
 * the script keep their places relative to each other, so that their imports resolve as they are:
 * there is no bundler.
 */
export function loadAssets(): Assets {
  const files = new Map<string, Buffer>();
  files.set('style.css', minified(read('./style.css') + read('./fields.css')));
  files.set('docs.css', minified(read('./docs.css')));
  files.set('owner/owner.css', minified(read('./owner/owner.css')));
  for (const module of [...modules, DOCS_SCRIPT])
    files.set(scriptPath(module), Buffer.from(stripped(read(module))));
  files.set(`libraries/${SIGNATURE_PAD}.js`, Buffer.from(signaturePad()));

  const hash = createHash('sha256');
  for (const [name, content] of files) hash.update(name).update(content);
  const folder = `assets/${hash.digest('hex').slice(0, HASH_LENGTH)}`;
  return {
    folder,
    style: `${folder}/style.css`,
    script: `${folder}/${scriptPath('./browser/page.ts')}`,
    copyingScript: `${folder}/${scriptPath(COPYING_SCRIPT)}`,
    docsStyle: `${folder}/docs.css`,
    ownerStyle: `${folder}/owner/owner.css`,
    docsScript: `${folder}/${scriptPath(DOCS_SCRIPT)}`,
    preloads: modules.map((module) => `${folder}/${scriptPath(module)}`),
    files: new Map([...files].map(([name, content]) => [`/${folder}/${name}`, assetOf(name, content)])),
    embed: assetOf('embed.js', Buffer.from(stripped(read('./browser/embed.ts')))),
  };
}

const COPYING_SCRIPT = './browser/copying.ts';

/** What the page's script consists of; the entry is the first. */
const modules = [
  './browser/page.ts',
  './browser/answers.ts',
  COPYING_SCRIPT,
  './browser/ranking.ts',
  './browser/signatures.ts',
  './browser/typing.ts',
  './browser/saving.ts',
  './browser/uploads.ts',
  './browser/visits.ts',
  './browser/zones.ts',
  '../domain/conditions/condition.ts',
  '../domain/fields/web-address.ts',
  '../text/file-size.ts',
];

const DOCS_SCRIPT = './browser/docs.ts';

/** A library that the page's script loads where a form asks for a drawn signature. */
const SIGNATURE_PAD = 'signature_pad';

function signaturePad(): string {
  const folder = pathToFileURL(createRequire(import.meta.url).resolve(SIGNATURE_PAD));
  const source = readFileSync(new URL('signature_pad.min.js', folder), 'utf8');
  return source.replace(/^\/\/# sourceMappingURL=.*$/m, '');
}

function read(path: string): string {
  return readFileSync(new URL(path, import.meta.url), 'utf8');
}

/**
 * `./browser/page.ts` → `pages/browser/page.js`, `../domain/conditions/condition.ts` →
 * `domain/conditions/condition.js`.
 */
function scriptPath(module: string): string {
  return module
    .replace(/^\.\.\//, '')
    .replace(/^\.\//, 'pages/')
    .replace(/\.ts$/, '.js');
}

/** The JavaScript of a module, without types, comments and blank lines. */
function stripped(source: string): string {
  return (
    withoutWarning(() => stripTypeScriptTypes(source))
      .replace(/^\s*(\/\*\*[\s\S]*?\*\/|\/\/.*)$/gm, '')
      .replace(/((?:from|import)\s+'\.[^']*)\.ts'/g, "$1.js'")
      // There is no import map: its inline script would need a hash in the policy.
      .replace(`'${SIGNATURE_PAD}'`, `'../../libraries/${SIGNATURE_PAD}.js'`)
      .replace(/[ \t]+$/gm, '')
      .replace(/\n{2,}/g, '\n')
  );
}

/**
 * Node warns on standard error that the call may change. The version is pinned and a test runs the
 * script, so the warning says nothing to the person who starts the service.
 */
function withoutWarning<Result>(work: () => Result): Result {
  const own = Object.getOwnPropertyDescriptor(process, 'emitWarning');
  process.emitWarning = () => {};
  try {
    return work();
  } finally {
    if (own) Object.defineProperty(process, 'emitWarning', own);
  }
}

function minified(style: string): Buffer {
  return Buffer.from(
    style
      .replace(/\/\*[\s\S]*?\*\//g, '')
      .replace(/\s*\n\s*/g, '\n')
      .trim(),
  );
}

function assetOf(name: string, content: Buffer): Asset {
  return {
    type: assetTypeOf(name),
    plain: content,
    gzip: gzipSync(content, { level: constants.Z_BEST_COMPRESSION }),
    br: brotliCompressSync(content),
  };
}

/** The media type of a file by its name: a style sheet or a script. */
export function assetTypeOf(name: string): string {
  return name.endsWith('.css') ? 'text/css; charset=utf-8' : 'text/javascript; charset=utf-8';
}

/** Sends a file in the best coding that the browser takes. */
export function sendAsset(request: Request, response: Response, asset: Asset, cacheControl: string): void {
  const coding = request.acceptsEncodings(['br', 'gzip', 'identity']);
  const [body, name] =
    coding === 'br' ? [asset.br, 'br'] : coding === 'gzip' ? [asset.gzip, 'gzip'] : [asset.plain, undefined];
  response.set({
    'content-type': asset.type,
    'content-length': String(body.length),
    'cache-control': cacheControl,
    'x-content-type-options': 'nosniff',
    // Pages of other origins may embed forms, so they may load the script.
    'cross-origin-resource-policy': 'cross-origin',
    vary: 'accept-encoding',
    ...(name === undefined ? {} : { 'content-encoding': name }),
  });
  response.end(body);
}

/** Enough that two versions of the files never meet. */
const HASH_LENGTH = 16;

export type Assets = {
  /** Their folder below the root, without slashes at the ends. */
  folder: string;
  style: string;
  script: string;
  /** Of the pages of owners: it copies what there is to copy. */
  copyingScript: string;
  /** Of `/docs`. */
  docsStyle: string;
  /** Of the pages of owners of forms, beside `style`. */
  ownerStyle: string;
  docsScript: string;
  /** All modules of the script, so that a browser can load them at once. */
  preloads: string[];
  files: ReadonlyMap<string, Asset>;
  /** The script of `/embed.js`. */
  embed: Asset;
};

/** A file in the codings that browsers take. */
export type Asset = { type: string; plain: Buffer; gzip: Buffer; br: Buffer };
