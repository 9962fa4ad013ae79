import type { IncomingMessage } from 'node:http';
import { pipeline } from 'node:stream';
import { promisify } from 'node:util';
import { createGunzip, gunzip } from 'node:zlib';
import type { FormDefinition } from '../../gen/headlessforms/v1/definition_pb.js';
import { Reason } from '../../gen/headlessforms/v1/errors_pb.js';
import {
  bodyTooLarge,
  hasBody,
  holdMore,
  readBody,
  readParts as receiveParts,
} from '../admission/read-body.ts';
import { checkDefinition, type DefinitionOptions } from '../domain/definition/definition.ts';
import { definitionMessageOf } from '../domain/definition/definition-proto.ts';
import { checkQuestions, withWholeOptions } from '../domain/definition/questions.ts';
import { failed } from '../domain/errors/failure.ts';
import { hasCode } from '../domain/errors/system-errors.ts';
import { custom, pathOf, type Violation } from '../domain/errors/violations.ts';
import type { JsonObject } from '../domain/json/json.ts';
import { jsonProblems } from '../domain/json/json-problems.ts';
import { parseJson } from '../domain/json/json-text.ts';
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
  checkJsonType(request.headers['content-type']);
  const { value, isTooDeep } = parseJson(bytes, 'body', maxNodes);
  return { value, problems: isTooDeep ? jsonProblems(value, '') : [] };
}

/**
 * Reads a whole body of at most `limit` bytes, as it came and decompressed. Throws a failure if it is larger, and a
 * `CutOff` if it ends early.
 */
export async function readBytes(request: IncomingMessage, limit: number): Promise<Buffer> {
  if (!hasBody(request)) return Buffer.alloc(0);
  const isZipped = isGzip(request);
  const bytes = await readBody(request, limit);
  if (!isZipped) return bytes;
  // No more can come of it. What it comes to is known only afterwards.
  const most = Math.min(limit, bytes.length * MOST_OF_A_BYTE);
  holdMore(request, most);
  const whole = await unzip(bytes, { maxOutputLength: Math.max(1, limit) }).catch((error: unknown) => {
    throw hasCode(error, 'ERR_BUFFER_TOO_LARGE') ? bodyTooLarge(limit) : notGzip(error);
  });
  holdMore(request, whole.length - most);
  return whole;
}

const unzip = promisify(gunzip);

/** Deflate makes at most so many bytes of one. */
const MOST_OF_A_BYTE = 1032;

/**
 * The parts of a body as they arrive. Throws a failure if it says that it is larger than `limit` bytes, or is
 * decompressed to more, and a `CutOff` if it ends early.
 */
export async function* readDecodedParts(request: IncomingMessage, limit: number): AsyncGenerator<Buffer> {
  const isZipped = isGzip(request);
  if (Number(request.headers['content-length']) > limit) throw bodyTooLarge(limit);
  const parts = receiveParts(request, PART_BYTES);
  yield* isZipped ? unzipped(parts, limit) : parts;
}

async function* unzipped(parts: AsyncGenerator<Buffer>, limit: number): AsyncGenerator<Buffer> {
  // Its errors, and those of the parts, come to who reads the decompressed ones.
  const inflating = pipeline(parts, createGunzip(), () => undefined);
  let size = 0;
  try {
    for await (const part of inflating) {
      size += part.length;
      if (size > limit) throw bodyTooLarge(limit);
      yield part;
    }
  } catch (error) {
    throw notGzip(error);
  }
}

/** A failure stays as it is. */
function notGzip(error: unknown): unknown {
  const isOfZlib = error instanceof Error && 'code' in error && String(error.code).startsWith('Z_');
  return isOfZlib ? failed(Reason.BAD_REQUEST, 'The body is not gzip, as its Content-Encoding says') : error;
}

/** Whether a body is compressed. Throws if it is by anything else than gzip, or more than once. */
export function isGzip(request: IncomingMessage): boolean {
  const encoding = (request.headers['content-encoding'] ?? 'identity').trim().toLowerCase();
  if (encoding === 'gzip' || encoding === 'x-gzip') return true;
  if (encoding === 'identity') return false;
  throw failed(Reason.MEDIA_TYPE, 'Expected a body without Content-Encoding, or with gzip');
}

/** The media type without its parameters, in lower case; empty if there is none. */
export function mediaTypeOfHeader(contentType: string | undefined): string {
  return (contentType ?? '').split(';', 1).join().trim().toLowerCase();
}

/** A parameter of a header such as `Content-Type`; undefined if there is none of that name. */
export function parameterOf(header: string | undefined, wanted: string): string | undefined {
  const all = [...(header ?? '').matchAll(parameters)];
  const [, , quoted, plain] = all.find(([, name = '']) => name.trim().toLowerCase() === wanted) ?? [];
  return quoted?.replaceAll('\\"', '"') ?? plain?.trim();
}

/**
 * A quote ends a value only where the next parameter follows: browsers send one within it as %22, others with a
 * backslash before it, which in Shift_JIS is the second byte of characters.
 */
const parameters = /;([^=;]*)=\s*(?:"((?:[^"]|"(?!\s*(?:;|$)))*)"?|([^;]*))/g;

/** Throws if a body is not JSON by its media type, or in another charset than JSON is. */
function checkJsonType(contentType: string | undefined): void {
  if (contentType === undefined || contentType === 'application/json') return;
  const type = mediaTypeOfHeader(contentType);
  if (type !== 'application/json' && !/^[\w.+-]+\/[\w.-]+\+json$/.test(type))
    throw failed(Reason.MEDIA_TYPE, 'Expected a body of the media type application/json');
  const charset = parameterOf(contentType, 'charset')?.slice(0, 40);
  if (charset !== undefined && !/^(utf-?8|us-ascii)$/i.test(charset))
    throw failed(Reason.MEDIA_TYPE, `Expected JSON in UTF-8; the charset of Content-Type is ${charset}`);
}

/**
 * Checks a form definition before it becomes a message, which can't carry unknown properties and wrong types. It stays as
 * it was sent: defaults are for the service to fill in, and no content of the request.
 *
 * The service checks it again and decides who has no key, and what a form may keep.
 */
export function readSentDefinition(raw: unknown, options: DefinitionOptions): ReadDefinition {
  const checked = checkDefinition(raw, options);
  const mayBeCurrent = options.keptUrl !== undefined && checked.definition !== undefined;
  if (!checked.ok && !mayBeCurrent) return checked;
  return { ok: true, value: definitionMessageOf(raw as object) };
}

/**
 * Reads what a session is of: a form, or questions of its own, as a definition or as a JSON Schema. Exactly one is
 * expected. A definition is checked at its places below `definition`, and again by the service, as a schema is.
 */
export function readSubject(
  { form_id, definition, schema, retention_days }: Asked,
  allowPrivateUrls: boolean,
): ReadSubject {
  if ([form_id, definition, schema].filter((one) => one !== undefined).length !== 1) {
    return { ok: false, violations: [custom('', 'Expected one of form_id, definition and schema')] };
  }
  if (schema !== undefined) return { ok: true, value: { schema } };
  if (definition === undefined) return { ok: true, value: { form_id } };
  const checked = checkQuestions(definition, { retentionDays: retention_days, allowPrivateUrls });
  if (checked.ok) {
    const whole = { ...definition, fields: withWholeOptions([definition.fields].flat()) };
    return { ok: true, value: { definition: definitionMessageOf(whole) } };
  }
  const violations = checked.violations.map((one) => ({ ...one, path: pathOf('definition', one.path) }));
  return { ok: false, violations };
}

/** What Node keeps of a body that nobody reads, which is all that is in memory of one whose parts are stored. */
const PART_BYTES = 64 * 1024;

export type JsonBody = { value: unknown; problems: Violation[] };

type ReadDefinition = { ok: true; value: FormDefinition } | { ok: false; violations: readonly Violation[] };

type Asked = {
  form_id?: string;
  definition?: JsonObject;
  schema?: JsonObject;
  /** Of questions: how many days answers are kept. */
  retention_days?: number;
};

type ReadSubject =
  | { ok: true; value: { form_id?: string | undefined; schema?: JsonObject; definition?: FormDefinition } }
  | { ok: false; violations: readonly Violation[] };
