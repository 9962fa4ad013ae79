import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import type { Request, RequestHandler, Response } from 'express';
import swaggerUi from 'swagger-ui-dist/package.json' with { type: 'json' };
import { sendPage } from '../http/reply.ts';
import { html } from '../text/html.ts';
import { type Asset, assetTypeOf, sendAsset } from './assets.ts';
import type { PageExchange } from './handler.ts';
import { assets, rootOf, securityHeaders } from './layout.ts';

/**
 * Answers GET on `/docs`: the reference of the REST interface, which Swagger UI makes of `/openapi.json` in the
 * browser. It loads nothing from elsewhere. Its policy allows the styles that Swagger UI sets, and no script but files
 * of this service.
 */
export async function showDocs({ request, response }: PageExchange): Promise<void> {
  const root = rootOf(request);
  const page = html`<!doctype html>
<html lang="en" data-mode="auto">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>API reference – Headless form service</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${root}${FOLDER}/swagger-ui.css">
<link rel="stylesheet" href="${root}${assets.docsStyle}">
<script src="${root}${FOLDER}/swagger-ui-bundle.js" defer></script>
<script type="module" src="${root}${assets.docsScript}"></script>
</head>
<body>
<header><a href="${root}">Headless form service</a> <a href="${root}openapi.json">openapi.json</a></header>
<div id="reference" data-root="${root}">
<noscript><p>This page needs script. <a href="${root}openapi.json">openapi.json</a> says the same.</p></noscript>
</div>
</body>
</html>
`;
  await sendPage(request, response, 200, { html: page.text, headers: securityHeaders(policy, []) });
}

const policy = [
  "default-src 'none'",
  "style-src 'self' 'unsafe-inline'",
  "script-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "form-action 'none'",
  "base-uri 'none'",
];

/** Where Swagger UI's files are. The version is in it, so that browsers may keep them for ever. */
const FOLDER = `docs/swagger-ui-${swaggerUi.version}`;

export const swaggerUiPath = `/${FOLDER}/:file`;

/** Sends a file of Swagger UI; passes on what is none. */
export const sendSwaggerUi: RequestHandler = async (request: Request, response: Response, next) => {
  const { file } = request.params;
  if (typeof file !== 'string' || !swaggerUiFiles.includes(file)) return next();
  let asset = loaded.get(file);
  if (asset === undefined) {
    asset = load(file);
    loaded.set(file, asset);
  }
  sendAsset(request, response, await asset, 'public, max-age=31536000, immutable');
};

const swaggerUiFiles = ['swagger-ui-bundle.js', 'swagger-ui.css'];

/** They are large, and few services are ever asked for them: they are read and compressed at the first request. */
const loaded = new Map<string, Promise<Asset>>();

async function load(file: string): Promise<Asset> {
  const plain = await readFile(createRequire(import.meta.url).resolve(`swagger-ui-dist/${file}`));
  const [zipped, br] = await Promise.all([
    promisify(gzip)(plain),
    promisify(brotliCompress)(plain, { params: { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY } }),
  ]);
  return { type: assetTypeOf(file), plain, gzip: zipped, br };
}

/** A tenth of a second for the bundle; the best quality takes several. */
const BROTLI_QUALITY = 5;
