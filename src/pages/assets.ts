import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import type { Request, Response } from 'express';
import swaggerUi from 'swagger-ui-dist/package.json' with { type: 'json' };

/**
 * The files that the pages load.
 *
 * Their paths carry a hash over all of them, so that browsers may keep them permanently. Scripts are bundled by
 * `npm run generate`: a page loads one.
 */
export function loadAssets(): Assets {
  const own = new Map<string, string>([
    ['style.css', minified(read('./style.css') + read('./fields.css'))],
    ['docs.css', minified(read('./docs.css'))],
    ['guides.css', minified(read('./guides.css'))],
    ['owner.css', minified(read('./owner/owner.css'))],
    ['new.css', minified(read('./new.css'))],
    [EMBED_PATH, read('../../gen/pages/embed.js')],
    ...['page', 'owner', 'new', 'docs'].map((name): [string, string] => [
      `${name}.js`,
      read(`../../gen/pages/${name}.js`),
    ]),
    [`libraries/${SIGNATURE_PAD}.js`, signaturePad()],
  ]);
  const hash = createHash('sha256').update(swaggerUi.version);
  for (const [name, content] of own) hash.update(name).update(content);
  const folder = `assets/${hash.digest('hex').slice(0, HASH_LENGTH)}`;

  const assets = new Map<string, Promise<Asset>>();
  const find = (path: string): Promise<Asset> | undefined => {
    const name = path.replace(`/${folder}/`, '');
    if (!own.has(name) && !swaggerUiFiles.includes(name)) return undefined;
    const asset = assets.get(name) ?? assetOf(name, own.get(name));
    assets.set(name, asset);
    return asset;
  };
  return {
    path: (name) => `${folder}/${name}`,
    find,
  };
}

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

function minified(style: string): string {
  return style
    .replace(/\/\*[\s\S]*?(?:\*\/|$)/g, '')
    .replace(/(?<!\s)\s*\n\s*/g, '\n')
    .trim();
}

/**
 * Of the API reference. They are large, and few services are ever asked for them: they are read at the first request.
 */
const swaggerUiFiles = ['libraries/swagger-ui-bundle.js', 'libraries/swagger-ui.css'];

/** A file in its codings. Without `content` it is one of Swagger UI's. */
async function assetOf(name: string, content?: string): Promise<Asset> {
  const source = `swagger-ui-dist/${basename(name)}`;
  const plain =
    content === undefined
      ? await readFile(createRequire(import.meta.url).resolve(source))
      : Buffer.from(content);
  const params = content === undefined ? { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY } : {};
  const [zipped, br] = await Promise.all([
    promisify(gzip)(plain, { level: constants.Z_BEST_COMPRESSION }),
    promisify(brotliCompress)(plain, { params }),
  ]);
  return { type: typeOf(name), plain, gzip: zipped, br };
}

/** A tenth of a second for the bundle; the best quality takes several. */
const BROTLI_QUALITY = 5;

/** The media type of a file by its name: a style sheet or a script. */
function typeOf(name: string): string {
  return name.endsWith('.css') ? 'text/css; charset=utf-8' : 'text/javascript; charset=utf-8';
}

/** Sends a file in the best coding that the browser takes. What has no hash in its path is kept for an hour. */
export function sendAsset(request: Request, response: Response, asset: Asset): void {
  const isFixed = request.path !== EMBED_PATH;
  const coding = request.acceptsEncodings(['br', 'gzip', 'identity']);
  const [body, name] =
    coding === 'br' ? [asset.br, 'br'] : coding === 'gzip' ? [asset.gzip, 'gzip'] : [asset.plain, undefined];
  response.set({
    'content-type': asset.type,
    'content-length': String(body.length),
    'cache-control': isFixed ? 'public, max-age=31536000, immutable' : 'max-age=3600',
    // Pages of other origins may embed forms, so they may load the script.
    'cross-origin-resource-policy': 'cross-origin',
    vary: 'accept-encoding',
    ...(name === undefined ? {} : { 'content-encoding': name }),
  });
  response.end(body);
}

/** The path of the script that sites embed forms with. They name it themselves, so that it has no hash. */
export const EMBED_PATH = '/embed.js';

/** Enough that two versions of the files never meet. */
const HASH_LENGTH = 16;

export type Assets = {
  /** The path of a file below the service's root, without a slash before it: `style.css`, `page.js`. */
  path: (name: string) => string;
  /** What is at a path, with a slash before it; undefined if there is no such file. */
  find: (path: string) => Promise<Asset> | undefined;
};

/** A file in the codings that browsers take. */
type Asset = { type: string; plain: Buffer; gzip: Buffer; br: Buffer };
