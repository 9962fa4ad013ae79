import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { jsonExcess } from '../domain/json-nodes.ts';
import type { MessageLimits } from '../domain/message-limits.ts';
import { jsonProblems, MAX_DEPTH } from '../domain/text.ts';
import type { Violation } from '../domain/violations.ts';
import { HttpError } from './errors.ts';

/**
 * Reads a JSON body. An empty one reads as `{}`, whatever its media type.
 *
 * `problems` is not empty if the value nests too deep to be processed; do not use `value` then. Throws an
 * `HttpError` if the body is too large, not JSON by its media type, or not JSON.
 */
export async function readJson(
  request: IncomingMessage,
  { jsonMaxBytes, maxNodes }: MessageLimits,
): Promise<JsonBody> {
  const bytes = await readBytes(request, jsonMaxBytes);
  if (bytes.length === 0) return { value: {}, problems: [] };
  if (!isJson(request.headers['content-type'])) throw wrongMediaType('application/json');
  const excess = jsonExcess(bytes, { maxNodes, maxDepth: MAX_DEPTH });
  if (excess === 'nodes') throw new HttpError('too_large', `The body holds more than ${maxNodes} values`);
  const value = parse(bytes);
  return { value, problems: excess === 'depth' ? jsonProblems(value, '') : [] };
}

/**
 * Reads a whole body of at most `limit` bytes. Throws an `HttpError` if it is larger or compressed,
 * and a `CutOff` if it ends early.
 */
export async function readBytes(request: IncomingMessage, limit: number): Promise<Buffer> {
  if (isEmpty(request)) return Buffer.alloc(0);
  refuseEncoded(request);
  if (Number(request.headers['content-length']) > limit) throw tooLarge(limit);
  const chunks: Buffer[] = [];
  let size = 0;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const take = (chunk: Buffer) => {
    size += chunk.length;
    if (size <= limit) chunks.push(chunk);
    else reject(tooLarge(limit));
  };
  // Detached at once: every request closes after its end, and an error that nobody reads still costs time.
  const detach = () => request.off('data', take).off('end', end).off('error', cutOff).off('close', cutOff);
  const end = () => {
    detach();
    resolve();
  };
  const cutOff = () => {
    detach();
    reject(new CutOff());
  };
  request.on('data', take).once('end', end).once('error', cutOff).once('close', cutOff);
  await promise.finally(detach);
  return chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks, size);
}

/**
 * The parts of a body as they arrive. Throws an `HttpError` if it is compressed or says that it is larger than
 * `limit` bytes, and a `CutOff` if it ends early.
 */
export async function* readParts(request: IncomingMessage, limit: number): AsyncGenerator<Buffer> {
  refuseEncoded(request);
  if (Number(request.headers['content-length']) > limit) throw tooLarge(limit);
  try {
    // The rest of a body that is refused is dropped by `drain`, so the request stays as it is.
    for await (const part of request.iterator({ destroyOnReturn: false })) yield part;
  } catch {
    throw new CutOff();
  }
}

/**
 * Reads and drops the rest of a body, up to 16 MiB: most clients read the reply only after they have sent
 * everything. Resolves to whether the end was reached, so that the connection can be kept.
 */
export async function drain(request: IncomingMessage): Promise<boolean> {
  if (request.complete || request.destroyed) return request.complete;
  if (Number(request.headers['content-length']) > MAX_DRAINED_BYTES) return false;
  let size = 0;
  try {
    for await (const part of request.iterator({ destroyOnReturn: false })) {
      size += part.length;
      if (size > MAX_DRAINED_BYTES) return false;
      // Otherwise 2 MiB of each connection would be read before anything else has its turn.
      await nextTurn();
    }
    return request.complete;
  } catch {
    return false;
  }
}

/** The error of a body that is larger than `limit` bytes. */
export function tooLarge(limit: number): HttpError {
  return new HttpError('too_large', `The body is larger than ${limit} bytes`);
}

/** The sender closed the connection before the end of the body, so that nobody reads an answer. */
export class CutOff extends Error {}

/** The error of a body of another media type. */
function wrongMediaType(...expected: string[]): HttpError {
  return new HttpError('media_type', `Expected a body of the media type ${expected.join(' or ')}`);
}

/** Refuses compressed bodies. */
export function refuseEncoded(request: IncomingMessage): void {
  const encoding = request.headers['content-encoding'] ?? 'identity';
  if (encoding.toLowerCase() === 'identity') return;
  throw new HttpError('media_type', 'Expected a body without Content-Encoding');
}

/** The media type without its parameters, in lower case; empty if there is none. */
export function mediaTypeOf(contentType: string | undefined): string {
  return (contentType ?? '').split(';', 1).join().trim().toLowerCase();
}

function isEmpty(request: IncomingMessage): boolean {
  const { 'content-length': length, 'transfer-encoding': encoding } = request.headers;
  return encoding === undefined && (length === undefined || length === '0');
}

function isJson(contentType: string | undefined): boolean {
  if (contentType === undefined || contentType === 'application/json') return true;
  const type = mediaTypeOf(contentType);
  if (type !== 'application/json' && !/^[\w.+-]+\/[\w.-]+\+json$/.test(type)) return false;
  const charset = /;\s*charset\s*=\s*"?([\w-]+)/i.exec(contentType)?.[1];
  return charset === undefined || /^(utf-?8|us-ascii)$/i.test(charset);
}

function parse(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) throw new HttpError('bad_request', 'The body is not UTF-8');
  const text = bytes.toString('utf8');
  try {
    return JSON.parse(text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text);
  } catch {
    // The parser's own message quotes the body.
    throw new HttpError('bad_request', 'The body is not JSON');
  }
}

/** Enough for a file that is somewhat too large. */
const MAX_DRAINED_BYTES = 16 * 1024 * 1024;

const BYTE_ORDER_MARK = '\uFEFF';

export type JsonBody = { value: unknown; problems: Violation[] };
