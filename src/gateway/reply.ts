import type { Request, Response } from 'express';
import type { Page } from './pages.ts';

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
