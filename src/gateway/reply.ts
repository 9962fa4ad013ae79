import type { CallOptions } from '@connectrpc/connect';
import type { Request, Response } from 'express';
import { passedBack } from './errors.ts';
import type { Page } from './pages.ts';

/**
 * What an RPC learns of the HTTP request beside its message: who calls, from where, and under
 * which request id. Its response headers that callers may see go onto the reply.
 */
export function callOptions(request: Request, response: Response): CallOptions {
  const headers: Record<string, string> = {};
  for (const name of passedOn) {
    const value = request.headers[name];
    if (typeof value === 'string') headers[name] = value;
  }
  const id = request.headers['x-request-id'];
  if (typeof id === 'string' && requestIdPattern.test(id)) headers['x-request-id'] = id;
  // The one address that Express found behind the trusted proxies, never the header as it came.
  if (request.ip !== undefined) headers['x-forwarded-for'] = request.ip;
  return { headers, onHeader: (received) => passBack(received, response) };
}

const passedOn = ['authorization', 'origin', 'referer', 'accept-language'] as const;

/** Ids end in the log: only what is harmless there is taken over. */
const requestIdPattern = /^[\w-]{1,64}$/;

function passBack(received: Headers, response: Response): void {
  for (const name of passedBack) {
    const value = received.get(name);
    if (value !== null) response.setHeader(name, value);
  }
}

/** Sends a JSON reply. */
export function sendJson(response: Response, status: number, body: unknown): void {
  const text = JSON.stringify(body);
  response.statusCode = status;
  response.setHeader('content-type', 'application/json; charset=utf-8');
  response.setHeader('content-length', Buffer.byteLength(text));
  response.end(text);
}

/** Sends a page in answer to a browser's form post. */
export function sendPage(response: Response, status: number, { html, headers }: Page): void {
  response.statusCode = status;
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  response.setHeader('content-type', 'text/html; charset=utf-8');
  response.setHeader('content-length', Buffer.byteLength(html));
  response.end(html);
}

/** Whether the caller would rather read JSON than a page. */
export function prefersJson(request: Request): boolean {
  return request.accepts(['html', 'json']) === 'json';
}
