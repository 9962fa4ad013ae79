import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { CallOptions } from '@connectrpc/connect';
import type { Request, Response } from 'express';
import type { Asset } from './assets.ts';
import { passedBack } from './failure.ts';
import type { Page } from './layout.ts';

/**
 * What an RPC learns of the HTTP request beside its message. The reply's headers that a browser may
 * see go onto the response.
 */
export function callOptions(request: Request, response: Response): CallOptions {
  const headers: Record<string, string> = { 'x-request-id': requestIdOf(response) };
  const language = request.headers['accept-language'];
  if (language !== undefined) headers['accept-language'] = language;
  // The one address that Express found behind the trusted proxies, never the header as it came.
  if (request.ip !== undefined) headers['x-forwarded-for'] = request.ip;
  const passBack = (received: Headers) => {
    for (const name of passedBack) {
      const value = received.get(name);
      if (value !== null) response.setHeader(name, value);
    }
  };
  return { headers, onHeader: passBack };
}

/** The id under which the log has whatever goes wrong with this request. */
export function requestIdOf(response: Response): string {
  response.locals.requestId ??= crypto.randomUUID();
  return response.locals.requestId;
}

/** Sends a page, compressed where the browser takes it. */
export async function sendPage(
  request: Request,
  response: Response,
  status: number,
  page: Page,
): Promise<void> {
  const zipped = request.acceptsEncodings(['gzip']) === 'gzip';
  const body = zipped ? await compress(page.html, { level: QUICK }) : Buffer.from(page.html);
  response
    .status(status)
    .set(page.headers)
    .set({
      'content-type': 'text/html; charset=utf-8',
      'content-length': String(body.length),
      vary: 'accept, accept-encoding, accept-language',
      ...(zipped ? { 'content-encoding': 'gzip' } : {}),
    });
  response.end(body);
}

/** Sends JSON that nobody keeps. */
export function sendJson(response: Response, status: number, body: unknown): void {
  response.set({ 'cache-control': 'no-store', 'x-content-type-options': 'nosniff', vary: 'accept' });
  response.status(status).json(body);
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
    // A page of another origin may embed the forms; its script is for everybody.
    'cross-origin-resource-policy': 'cross-origin',
    vary: 'accept-encoding',
    ...(name === undefined ? {} : { 'content-encoding': name }),
  });
  response.end(body);
}

/** Whether whoever asks would rather read JSON than a page. */
export function prefersJson(request: Request): boolean {
  return request.accepts(['html', 'json']) === 'json';
}

const compress = promisify(gzip);

/** Pages are small and made for one person: a higher level costs more time than it saves. */
const QUICK = 4;
