import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { pipeline } from 'node:stream/promises';
import type { Request, Response } from 'express';
import { Reason } from '../../gen/headlessforms/v1/errors_pb.js';
import type { Upload } from '../../gen/headlessforms/v1/uploads_pb.js';
import { CutOff, discard } from '../admission/read-body.ts';
import { failed } from '../domain/errors/failure.ts';
import type { Violation } from '../domain/errors/violations.ts';
import { accessLineOf, noteRefusal } from '../telemetry/access-log.ts';
import { type RestError, restErrorOf } from './errors.ts';
import type { FormInputs } from './multipart.ts';
import { requestIdOf } from './rpc-client.ts';
import { present } from './shape.ts';

/** Sends a JSON reply. Headers for caches and browsers were set before. */
export function sendJson(response: Response, status: number, body: unknown): void {
  const text = JSON.stringify(body);
  response.statusCode = status;
  response.setHeader('content-type', 'application/json; charset=utf-8');
  response.setHeader('content-length', Buffer.byteLength(text));
  response.end(text);
}

/**
 * Sends a body in chunks, asking for each when the reader has taken the one before, so that memory holds one or
 * two of them; for HEAD it asks for none. Ends without an error when the reader goes.
 */
export async function sendChunks(
  response: Response,
  chunks: AsyncIterable<string | Uint8Array>,
): Promise<void> {
  if (response.req.method === 'HEAD') {
    response.end();
    return;
  }
  let isGone = false;
  response.once('close', () => {
    isGone = !response.writableFinished;
  });
  try {
    // One listener for all chunks: a compressed reply keeps those that wait for its `drain`.
    await pipeline(chunks, response);
  } catch (error) {
    if (!isGone) throw error;
  }
}

/**
 * Sends the bytes in the messages that an RPC answers with; the first was taken already; then ends the call.
 */
export async function sendMessages<T>(
  response: Response,
  first: IteratorResult<T>,
  rest: AsyncGenerator<T>,
  bytesOf: (message: T) => Uint8Array,
): Promise<void> {
  async function* contents(): AsyncGenerator<Uint8Array> {
    if (!first.done) yield bytesOf(first.value);
    for await (const message of rest) yield bytesOf(message);
  }
  try {
    await sendChunks(response, contents());
  } finally {
    await rest.return(undefined);
  }
}

/**
 * Sends a file that an RPC answers with in chunks; the first says what it is. Browsers save it under its name
 * and never show it: it is a stranger's.
 */
export async function sendFile(response: Response, chunks: AsyncGenerator<FileChunk>): Promise<void> {
  const first = await chunks.next();
  const { filename, contentType, size } = present(first.value?.upload);
  response.attachment(filename);
  response.setHeader('content-type', contentType);
  response.setHeader('content-length', size);
  response.setHeader('content-security-policy', "default-src 'none'; base-uri 'none'; sandbox");
  await sendMessages(response, first, chunks, ({ content }) => content);
}

/** Sends a page. */
export function sendPage(response: Response, status: number, page: HtmlPage): void {
  response
    .status(status)
    .set(page.headers)
    .set({
      'content-type': 'text/html; charset=utf-8',
      'content-length': String(Buffer.byteLength(page.html)),
      vary: 'accept, accept-encoding, accept-language',
    });
  response.end(page.html);
}

/**
 * Sends a body with its `ETag`, or 304 if the caller has it. The tag is a weak one: it stays the same in every coding.
 */
export function sendTagged(request: Request, response: Response, body: string | Uint8Array): void {
  const tag = createHash('sha256').update(body).digest('base64url').slice(0, TAG_LENGTH);
  response.setHeader('etag', `W/"${tag}"`);
  if (!response.hasHeader('cache-control')) response.setHeader('cache-control', 'no-cache');
  // Express's `fresh` would heed `Cache-Control: no-cache`, which `fetch` adds to requests with `If-None-Match`.
  const known = (request.headers['if-none-match'] ?? '').split(',');
  if (known.some((each) => each.trim() === '*' || each.includes(`"${tag}"`))) {
    response.status(304).end();
    return;
  }
  response.setHeader('content-length', Buffer.byteLength(body));
  response.end(body);
}

/** 132 bits. */
const TAG_LENGTH = 22;

/** Whether `Accept` prefers JSON to a page. */
export function prefersJson(request: Request): boolean {
  return request.accepts(['html', 'json']) === 'json';
}

/**
 * Answers a request whose handler threw: `send` gets the documented error. A fault that was not logged yet is.
 *
 * The rest of a body that was not read is dropped up to a bound; after a longer one the connection is closed. If
 * the caller has gone there is no answer; if the reply has begun the connection is broken.
 */
export async function sendError(error: unknown, options: ErrorReply): Promise<void> {
  const { request, response, log, send } = options;
  if (error instanceof CutOff || response.destroyed) return void request.socket.destroy();
  const refusal = logged(restErrorOf(error), options, log);
  noteRefusal(accessLineOf(request), refusal.reason);
  if (response.headersSent) return void response.destroy();
  for (const [name, value] of Object.entries(refusal.headers)) response.setHeader(name, value);
  if (!(await discard(request))) response.setHeader('connection', 'close');
  await send(refusal);
}

/** Logs a fault that no service has logged, under an id that the caller gets. */
function logged(error: RestError, { request }: Exchange, log: ErrorLog): RestError {
  if (error.fault === undefined) return error;
  const requestId = requestIdOf(request);
  log.error({ err: error.fault, requestId }, 'a request failed');
  return restErrorOf(failed(Reason.INTERNAL, `Internal error (request ${requestId})`));
}

type FileChunk = { upload?: Upload | undefined; content: Uint8Array };

/** A page, without its status and media type. */
export type HtmlPage = { html: string; headers: Record<string, string> };

/** A post of a site's own form, and what is wrong with it. */
export type RefusedPost = {
  request: IncomingMessage;
  inputs: FormInputs;
  details: readonly Violation[];
  /** The address of the page that has the form, http or https; empty if it is not known. */
  site: string;
};

/** The part of a logger that faults go to. */
export type ErrorLog = { error(facts: object, message: string): void };

type Exchange = { request: Request; response: Response };

type ErrorReply = Exchange & {
  log: ErrorLog;
  /** Sends the error as JSON or as a page. */
  send: (error: RestError) => Promise<void> | void;
};
