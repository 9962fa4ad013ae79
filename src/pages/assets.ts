import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createRequire, stripTypeScriptTypes } from 'node:module';
import { basename } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { brotliCompress, brotliCompressSync, constants, gzip, gzipSync } from 'node:zlib';
import type { Request, Response } from 'express';
import swaggerUi from 'swagger-ui-dist/package.json' with { type: 'json' };

/**
 * The files that the pages load.
 *
 * Their paths carry a hash over all of them, so that browsers may keep them for ever. The modules of
 * the script keep their places relative to each other, so that their imports resolve as they are:
 * there is no bundler.
 */
export function loadAssets(): Assets {
  const own = new Map<string, Buffer>([
    ['style.css', minified(read('./style.css') + read('./fields.css'))],
    ['docs.css', minified(read('./docs.css'))],
    ['owner.css', minified(read('./owner/owner.css'))],
    [`libraries/${SIGNATURE_PAD}.js`, Buffer.from(signaturePad())],
    ...[...modules, './browser/docs.ts'].map((module): [string, Buffer] => [
      scriptPath(module),
      Buffer.from(stripped(read(module))),
    ]),
  ]);
  const hash = createHash('sha256').update(swaggerUi.version);
  for (const [name, content] of own) hash.update(name).update(content);
  const folder = `assets/${hash.digest('hex').slice(0, HASH_LENGTH)}`;

  const ready = new Map([...own].map(([name, content]) => [name, assetOf(name, content)]));
  const large = new Map<string, Promise<Asset>>();
  return {
    path: (name) => `${folder}/${name}`,
    preloads: modules.map((module) => `${folder}/${scriptPath(module)}`),
    embed: assetOf('embed.js', Buffer.from(stripped(read('./browser/embed.ts')))),
    find: (path) => {
      if (!path.startsWith(`/${folder}/`)) return undefined;
      const name = path.slice(folder.length + 2);
      const found = ready.get(name) ?? large.get(name);
      if (found !== undefined || !swaggerUiFiles.includes(name)) return found;
      const loading = loadLarge(name);
      large.set(name, loading);
      return loading;
    },
  };
}

/** What the page's script consists of; the entry is the first. */
const modules = [
  './browser/page.ts',
  './browser/answers.ts',
  './browser/kept.ts',
  './browser/copying.ts',
  './browser/inputs.ts',
  './browser/ranking.ts',
  './browser/signatures.ts',
  './browser/saving.ts',
  './browser/uploads.ts',
  '../domain/conditions/condition.ts',
  '../domain/fields/web-address.ts',
  '../text/quantities.ts',
];

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
    type: typeOf(name),
    plain: content,
    gzip: gzipSync(content, { level: constants.Z_BEST_COMPRESSION }),
    br: brotliCompressSync(content),
  };
}

/** Of the API reference. They are large, and few services are ever asked for them: they are read at the first request. */
const swaggerUiFiles = ['libraries/swagger-ui-bundle.js', 'libraries/swagger-ui.css'];

async function loadLarge(name: string): Promise<Asset> {
  const source = `swagger-ui-dist/${basename(name)}`;
  const plain = await readFile(createRequire(import.meta.url).resolve(source));
  const [zipped, br] = await Promise.all([
    promisify(gzip)(plain),
    promisify(brotliCompress)(plain, { params: { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY } }),
  ]);
  return { type: typeOf(name), plain, gzip: zipped, br };
}

/** A tenth of a second for the bundle; the best quality takes several. */
const BROTLI_QUALITY = 5;

/** The media type of a file by its name: a style sheet or a script. */
function typeOf(name: string): string {
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
  /** The path of a file below the service's root, without a slash before it: `style.css`, `pages/browser/page.js`. */
  path: (name: string) => string;
  /** What is at a path, with a slash before it; undefined if there is no such file. */
  find: (path: string) => Asset | Promise<Asset> | undefined;
  /** The paths of all modules of the page's script, so that a browser can load them at once. */
  preloads: readonly string[];
  /** The script of `/embed.js`. */
  embed: Asset;
};

/** A file in the codings that browsers take. */
export type Asset = { type: string; plain: Buffer; gzip: Buffer; br: Buffer };
