import type { IncomingMessage } from 'node:http';
import type { ConnectError } from '@connectrpc/connect';
import type { FormDefinition } from '../../gen/headlessforms/v1/definition_pb.js';
import { Reason } from '../../gen/headlessforms/v1/errors_pb.js';
import type { CreateSessionRequest } from '../../gen/headlessforms/v1/sessions_pb.js';
import { bodyTooLarge, hasBody, readBody, readParts as receiveParts } from '../admission/read-body.ts';
import { checkDefinition, type DefinitionOptions } from '../domain/definition/definition.ts';
import { definitionToMessage } from '../domain/definition/definition-proto.ts';
import { checkQuestions } from '../domain/definition/questions.ts';
import { failed } from '../domain/errors/failure.ts';
import { pathOf, type Violation } from '../domain/errors/violations.ts';
import type { JsonObject } from '../domain/json/json.ts';
import { jsonProblems } from '../domain/json/json-problems.ts';
import { readJson as parseJson } from '../domain/json/json-text.ts';
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
  const { value, isTooDeep } = parseJson(bytes, 'body', maxNodes);
  return { value, problems: isTooDeep ? jsonProblems(value, '') : [] };
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

/**
 * Reads what a session is of: a form, or questions of its own, as a definition or as a JSON Schema. Exactly one is
 * expected. A definition is checked at its places below `definition`, and again by the service, as a schema is.
 */
export function readSubject(
  { form_id, definition, schema, retention_days }: Asked,
  allowPrivateUrls: boolean,
): ReadSubject {
  if ([form_id, definition, schema].filter((one) => one !== undefined).length !== 1) {
    const message = 'Expected one of form_id, definition and schema';
    return { ok: false, violations: [{ path: '', code: 'custom', message }] };
  }
  if (schema !== undefined) return { ok: true, value: { case: 'schema', value: schema } };
  if (definition === undefined) return { ok: true, value: { case: 'formId', value: form_id ?? '' } };
  const checked = checkQuestions(definition, { retentionDays: retention_days, allowPrivateUrls });
  if (checked.ok) {
    const { delivery: _, ...message } = definitionToMessage(checked.definition);
    return { ok: true, value: { case: 'definition', value: message } };
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
  | { ok: true; value: Exclude<CreateSessionRequest['subject'], { case: undefined }> }
  | { ok: false; violations: readonly Violation[] };
