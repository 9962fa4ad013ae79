import { once } from 'node:events';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { Request, Response } from 'express';
import { Reason } from '../../gen/headlessforms/v1/errors_pb.js';
import type { Upload } from '../../gen/headlessforms/v1/uploads_pb.js';
import { CutOff, discard } from '../admission/read-body.ts';
import { failed } from '../domain/errors/failure.ts';
import { accessLineOf, noteRefusal } from '../telemetry/access-log.ts';
import { type RestError, restErrorOf } from './errors.ts';
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
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  try {
    for await (const chunk of response.req.method === 'HEAD' ? [] : chunks) {
      if (!response.write(chunk)) await once(response, 'drain', { signal: gone.signal });
    }
    response.end();
  } catch (error) {
    if (!gone.signal.aborted) throw error;
  }
}

/**
 * Sends the bytes in the messages that an RPC answers with, of which the first was taken already; then ends the call.
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
 * Sends a file that an RPC answers with in chunks, of which the first says what it is. Browsers save it under its name
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

const compress = promisify(gzip);

/** Pages are small and sent once: a higher level costs more time than it saves. */
const QUICK = 4;

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
export type Page = { html: string; headers: Record<string, string> };

/** The part of a logger that faults go to. */
export type ErrorLog = { error(facts: object, message: string): void };

type Exchange = { request: Request; response: Response };

type ErrorReply = Exchange & {
  log: ErrorLog;
  /** Sends the error as JSON or as a page. */
  send: (error: RestError) => Promise<void> | void;
};
