import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import type { Unread } from '../body/discard.ts';
import { hasBody } from '../body/has-body.ts';
import { readBody, readParts as receiveParts, UnreadError } from '../body/read-body.ts';
import type { Violation } from '../domain/errors/violations.ts';
import { jsonExcess } from '../domain/json/json-nodes.ts';
import { jsonProblems, MAX_DEPTH } from '../domain/json/well-formed.ts';
import type { MessageLimits } from '../domain/limits/message-limits.ts';
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
  if (!hasBody(request)) return Buffer.alloc(0);
  refuseEncoded(request);
  const bytes = await readBody(request, limit);
  if (typeof bytes === 'string') throw unreadable(bytes, limit);
  return bytes;
}

/**
 * The parts of a body as they arrive. Throws an `HttpError` if it is compressed or says that it is larger than
 * `limit` bytes, and a `CutOff` if it ends early.
 */
export async function* readParts(request: IncomingMessage, limit: number): AsyncGenerator<Buffer> {
  refuseEncoded(request);
  if (Number(request.headers['content-length']) > limit) throw tooLarge(limit);
  try {
    yield* receiveParts(request, PART_BYTES);
  } catch (error) {
    throw error instanceof UnreadError ? unreadable(error.reason, limit) : error;
  }
}

/** The error of a body that could not be read. */
function unreadable(reason: Unread, limit: number): Error {
  switch (reason) {
    case 'cut off':
      return new CutOff();
    case 'too large':
      return tooLarge(limit);
    case 'too slow':
      return new HttpError('bad_request', 'The request took too long to arrive');
    case 'over budget':
      return new HttpError('unavailable', 'Too many requests are arriving at once; try again soon');
    default:
      return reason satisfies never;
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
  } catch (error) {
    throw new HttpError('bad_request', `The body is not JSON${placeOf(error)}`);
  }
}

/** Where a text stops being JSON, as far as the parser says so. The rest of its message may quote the text. */
function placeOf(error: unknown): string {
  const message = error instanceof Error ? error.message : '';
  if (message.startsWith('Unexpected end')) return ': it ends too early';
  const [, line, column] = /\(line (\d+) column (\d+)\)$/.exec(message) ?? [];
  return line === undefined ? '' : `: see line ${line}, column ${column}`;
}

/** What Node keeps of a body that nobody reads, which is all that is in memory of one whose parts are stored. */
const PART_BYTES = 64 * 1024;

const BYTE_ORDER_MARK = '\uFEFF';

export type JsonBody = { value: unknown; problems: Violation[] };
