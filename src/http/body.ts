import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import type { ConnectError } from '@connectrpc/connect';
import type { FormDefinition } from '../../gen/headlessforms/v1/definition_pb.js';
import { Reason } from '../../gen/headlessforms/v1/errors_pb.js';
import { bodyTooLarge, hasBody, readBody, readParts as receiveParts } from '../admission/read-body.ts';
import { checkDefinition, type DefinitionOptions } from '../domain/definition/definition.ts';
import { definitionToMessage } from '../domain/definition/definition-proto.ts';
import { failed } from '../domain/errors/failure.ts';
import type { Violation } from '../domain/errors/violations.ts';
import { jsonExcess, jsonProblems, MAX_DEPTH } from '../domain/json/json-problems.ts';
import type { MessageLimits } from '../domain/limits/limits.ts';

/**
 * Reads a JSON body. An empty one reads as `{}`, whatever its media type.
 *
 * `problems` is not empty if the value nests too deep to be processed; do not use `value` then. Throws a
 * failure if the body is too large, not JSON by its media type, or not JSON.
 */
export async function readJson(
  request: IncomingMessage,
  { jsonMaxBytes, maxNodes }: MessageLimits,
): Promise<JsonBody> {
  const bytes = await readBytes(request, jsonMaxBytes);
  if (bytes.length === 0) return { value: {}, problems: [] };
  if (!isJson(request.headers['content-type'])) throw wrongMediaType('application/json');
  const excess = jsonExcess(bytes, { maxNodes, maxDepth: MAX_DEPTH });
  if (excess === 'nodes') throw failed(Reason.TOO_LARGE, `The body holds more than ${maxNodes} values`);
  const value = parse(bytes);
  return { value, problems: excess === 'depth' ? jsonProblems(value, '') : [] };
}

/**
 * Reads a whole body of at most `limit` bytes. Throws a failure if it is larger or compressed,
 * and a `CutOff` if it ends early.
 */
export async function readBytes(request: IncomingMessage, limit: number): Promise<Buffer> {
  if (!hasBody(request)) return Buffer.alloc(0);
  refuseEncoded(request);
  return readBody(request, limit);
}

/**
 * The parts of a body as they arrive. Throws a failure if it is compressed or says that it is larger than
 * `limit` bytes, and a `CutOff` if it ends early.
 */
export async function* readParts(request: IncomingMessage, limit: number): AsyncGenerator<Buffer> {
  refuseEncoded(request);
  if (Number(request.headers['content-length']) > limit) throw bodyTooLarge(limit);
  yield* receiveParts(request, PART_BYTES);
}

/** The error of a body of another media type. */
function wrongMediaType(...expected: string[]): ConnectError {
  return failed(Reason.MEDIA_TYPE, `Expected a body of the media type ${expected.join(' or ')}`);
}

/** Refuses compressed bodies. */
export function refuseEncoded(request: IncomingMessage): void {
  const encoding = request.headers['content-encoding'] ?? 'identity';
  if (encoding.toLowerCase() === 'identity') return;
  throw failed(Reason.MEDIA_TYPE, 'Expected a body without Content-Encoding');
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
  if (!isUtf8(bytes)) throw failed(Reason.BAD_REQUEST, 'The body is not UTF-8');
  const text = bytes.toString('utf8');
  try {
    return JSON.parse(text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text);
  } catch (error) {
    throw failed(Reason.BAD_REQUEST, `The body is not JSON${placeOf(error)}`);
  }
}

/** Where a text stops being JSON, as far as the parser says so. The rest of its message may quote the text. */
function placeOf(error: unknown): string {
  const message = error instanceof Error ? error.message : '';
  if (message.startsWith('Unexpected end')) return ': it ends too early';
  const [, line, column] = /\(line (\d+) column (\d+)\)$/.exec(message) ?? [];
  return line === undefined ? '' : `: see line ${line}, column ${column}`;
}

/**
 * Checks a form definition before it becomes a message, which can't carry unknown properties and wrong types.
 *
 * The service checks it again and decides who has no key.
 */
export function readDefinition(raw: unknown, options: DefinitionOptions): ReadDefinition {
  const checked = checkDefinition(raw, options);
  if (!checked.ok) return checked;
  const message = definitionToMessage(checked.definition);
  const channel = message.delivery?.channel;
  if (channel?.case === 'webhook') channel.value.secret = checked.deliverySecret ?? '';
  return { ok: true, value: message };
}

/** What Node keeps of a body that nobody reads, which is all that is in memory of one whose parts are stored. */
const PART_BYTES = 64 * 1024;

const BYTE_ORDER_MARK = '\uFEFF';

export type JsonBody = { value: unknown; problems: Violation[] };

type ReadDefinition = { ok: true; value: FormDefinition } | { ok: false; violations: readonly Violation[] };
