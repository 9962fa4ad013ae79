import { promisify } from 'node:util';
import zlib from 'node:zlib';
import { type DescMethod, fromBinary, fromJsonString } from '@bufbuild/protobuf';
import { Code, ConnectError, type Interceptor } from '@connectrpc/connect';
import type { Compression } from '@connectrpc/connect/protocol';
import { compressionGzip } from '@connectrpc/connect-node';
import { Reason } from '../../../gen/forms/v1/errors_pb.js';
import { hasCode } from '../../domain/errors/system-errors.ts';
import { jsonExcess } from '../../domain/json/json-nodes.ts';
import { MAX_DEPTH } from '../../domain/json/well-formed.ts';
import { limitsOf, type MessageLimits } from '../../domain/limits/message-limits.ts';
import { failed, invalid, unreadable } from '../errors.ts';
import { ENVELOPE_HEAD } from './limits.ts';
import { messageExcess } from './message-nodes.ts';

/**
 * Throws if a request message holds more than `limits` allow, or nests too deep: small messages can hold so many
 * values that making objects of them would block the process.
 */
export function checkMessage(
  method: DescMethod,
  message: Uint8Array,
  codec: Codec,
  { readMaxBytes, jsonMaxBytes, maxNodes }: MessageLimits,
): void {
  const maxBytes = codec === 'json' ? jsonMaxBytes : readMaxBytes;
  if (message.length > maxBytes) throw tooLarge(maxBytes);
  const limits = { maxNodes, maxDepth: MAX_DEPTH };
  const excess =
    codec === 'json' ? jsonExcess(message, limits) : messageExcess(message, method.input, limits);
  if (excess === 'nodes') throw failed(Reason.TOO_LARGE, `The message holds more than ${maxNodes} values`);
  if (excess === 'depth') {
    throw invalid([{ path: '', code: 'custom', message: `Expected a message at most ${MAX_DEPTH} deep` }]);
  }
}

/**
 * The one message of a unary call's body, decompressed and checked, as its handler takes it. `encoding` is that of
 * the whole body, which only Connect has. What is broken is left to the handler, which refuses it.
 */
export async function openBody(body: Uint8Array, call: UnaryCall): Promise<Uint8Array> {
  const { method, header, encoding, limits } = call;
  const type = header.get('content-type') ?? '';
  const codec = json.test(type) ? 'json' : 'binary';
  if (!enveloped.test(type)) {
    const message = encoding === 'gzip' ? await gunzip(body, limits) : body;
    checkMessage(method, message, codec, limits);
    return message;
  }
  const first = envelopeAt(body, 0);
  const second = first && envelopeAt(body, first.end);
  const only = second === undefined ? first : undefined;
  if (only?.compressed && header.get('grpc-encoding') === 'gzip') {
    const message = await gunzip(only.data, limits);
    checkMessage(method, message, codec, limits);
    const head = Buffer.alloc(ENVELOPE_HEAD);
    head.writeUInt32BE(message.length, 1);
    return Buffer.concat([head, message]);
  }
  // The handler refuses a second message. Millions of empty ones would block the process.
  const judged = second === undefined ? body : body.subarray(0, second.end);
  for (const data of plainMessagesIn(judged)) checkMessage(method, data, codec, limits);
  return judged;
}

/** Throws BAD_REQUEST if the messages in a body of envelopes can't be parsed, as far as they are not compressed. */
export function refuseUnreadableIn(body: Uint8Array, { input }: DescMethod, header: Headers): void {
  const isJson = json.test(header.get('content-type') ?? '');
  for (const data of plainMessagesIn(body)) {
    try {
      if (isJson) fromJsonString(input, new TextDecoder().decode(data), { ignoreUnknownFields: true });
      else fromBinary(input, data);
    } catch (error) {
      throw unreadable(error);
    }
  }
}

/** Throws BAD_REQUEST for messages of a stream that can't be read, which Connect calls an error of the service. */
export const refuseUnreadableMessages: Interceptor = (next) => (req) =>
  next(req.stream ? { ...req, message: readable(req.message) } : req);

async function* readable<T>(messages: AsyncIterable<T>): AsyncGenerator<T> {
  try {
    yield* messages;
  } catch (error) {
    throw error instanceof ConnectError && error.code === Code.Internal ? unreadable(error) : error;
  }
}

const enveloped = /^application\/(grpc|connect\+)/i;
const json = /[/+]json\b/i;

/** The messages in a body that are not compressed. */
function* plainMessagesIn(body: Uint8Array): Iterable<Uint8Array> {
  for (let next = envelopeAt(body, 0); next !== undefined; next = envelopeAt(body, next.end)) {
    if (!next.compressed) yield next.data;
  }
}

/** The envelope that begins there in a body: a byte of flags, four of length, the message, which may be cut off. */
function envelopeAt(body: Uint8Array, at: number): Envelope | undefined {
  if (at + ENVELOPE_HEAD > body.length) return undefined;
  const view = new DataView(body.buffer, body.byteOffset + at, ENVELOPE_HEAD);
  const end = at + ENVELOPE_HEAD + view.getUint32(1);
  const compressed = (view.getUint8(0) & COMPRESSED_FLAG) !== 0;
  return { compressed, data: body.subarray(at + ENVELOPE_HEAD, end), end };
}

const COMPRESSED_FLAG = 1;

async function gunzip(bytes: Uint8Array, { readMaxBytes }: MessageLimits): Promise<Uint8Array<ArrayBuffer>> {
  if (bytes.length === 0) return new Uint8Array();
  try {
    return await unzip(bytes, { maxOutputLength: readMaxBytes, chunkSize: CHUNK_BYTES });
  } catch (cause) {
    if (hasCode(cause, 'ERR_BUFFER_TOO_LARGE')) throw tooLarge(readMaxBytes);
    throw failed(Reason.BAD_REQUEST, "The message can't be decompressed", { cause });
  }
}

const unzip = promisify(zlib.gunzip);

/**
 * The thread of the event loop takes 2 to 6 ms for 10 MiB in chunks of this size, and 17 to 30 ms in those of Node and
 * Connect, of 16 KiB.
 */
const CHUNK_BYTES = 64 * 1024;

/** Gzip for messages that come in a stream or a URL: each is checked as soon as it is decompressed. */
export function checkedGzip(method: DescMethod): Compression {
  return {
    ...compressionGzip,
    async decompress(bytes) {
      const limits = limitsOf(method);
      const message = await gunzip(bytes, limits);
      // Which codec it is in is not known here. Some binary messages begin as JSON does, too.
      checkMessage(method, message, 'binary', limits);
      if (mayBeJson(message)) checkMessage(method, message, 'json', limits);
      return message;
    },
  };
}

function mayBeJson(message: Uint8Array): boolean {
  const start = message.findIndex((byte) => !whitespace.has(byte));
  return message[start] === 0x7b;
}

const whitespace = new Set([0x20, 0x09, 0x0a, 0x0d]);

/** The failure of a message that is larger than `limit` bytes. */
export function tooLarge(limit: number): ConnectError {
  return failed(Reason.TOO_LARGE, `The message is larger than ${limit} bytes`);
}

type Envelope = { compressed: boolean; data: Uint8Array; end: number };

type Codec = 'json' | 'binary';

/** What says how a body is to be read. */
export type UnaryCall = {
  method: DescMethod;
  header: Headers;
  encoding: 'gzip' | undefined;
  limits: MessageLimits;
};
