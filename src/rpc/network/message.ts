import type { ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import zlib from 'node:zlib';
import type { DescMethod } from '@bufbuild/protobuf';
import { Code, ConnectError, type ContextValues } from '@connectrpc/connect';
import { compressionGzip } from '@connectrpc/connect-node';
import { Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import type { Request } from '../../admission/client.ts';
import { CutOff, readBody, readParts, setKnownCaller } from '../../admission/read-body.ts';
import { failed, invalid } from '../../domain/errors/failure.ts';
import { hasCode } from '../../domain/errors/system-errors.ts';
import type { Json } from '../../domain/json/json.ts';
import { MAX_DEPTH, scanJson } from '../../domain/json/json-problems.ts';
import { parseJson } from '../../domain/json/json-text.ts';
import type { MessageLimits } from '../../domain/limits/limits.ts';
import { limitsOf } from '../../domain/methods.ts';
import { callerIfAny } from '../context.ts';
import { messageExcess } from './message-nodes.ts';
import { COMPRESSED_FLAG, type CodecName, type Spoken } from './protocols.ts';

/**
 * Receives the one message of a call, decompressed and checked. Fails if it is not exactly one, is
 * larger or holds more than the method allows its caller, or is cut off.
 */
export async function receiveMessage(call: Readable & Received): Promise<Opened> {
  const { method, spoken, values, request, response } = call;
  const { endFlag, isText } = spoken.protocol;
  if (isKnown(values)) setKnownCaller(request);
  const { readMaxBytes } = limitsFor(method, values);
  const most = (readMaxBytes + ENVELOPE_HEAD) * (isText ? TEXT_OVERHEAD : 1);
  const received = await readBody(request, Math.ceil(most)).catch((error: unknown) => {
    if (error instanceof CutOff) response.destroy();
    throw asCanceled(error);
  });
  const body = isText ? fromText(received) : received;
  return openMessage(call, endFlag === undefined ? wholeOf(body, call) : onlyIn(body, endFlag, call));
}

/** The parts of the body of a call with many messages; its handler holds one at a time. */
export async function* receiveParts({
  method,
  values,
  request,
}: Readable & Received): AsyncGenerator<Uint8Array> {
  if (isKnown(values)) setKnownCaller(request);
  try {
    yield* readParts(request, limitsFor(method, values).readMaxBytes);
  } catch (error) {
    throw asCanceled(error);
  }
}

/** The message that a query holds, decompressed and checked. */
export function messageIn(query: URLSearchParams, call: Readable): Promise<Opened> {
  const text = query.get('message') ?? '';
  const isBase64 = query.get('base64') === '1';
  if (isBase64 && !urlBase64.test(text)) throw unreadable();
  return openMessage(call, wholeOf(Buffer.from(text, isBase64 ? 'base64' : 'utf8'), call));
}

/** Of either alphabet, with its padding or without. */
const urlBase64 = /^([\w+/-]{4})*([\w+/-]{2,3}={0,2})?$/;

/** Throws if the body that a call announces is too large for anybody. */
export function refuseAnnounced(method: DescMethod, header: Headers, spoken?: Spoken): void {
  const announced = Number(header.get('content-length')) / (spoken?.protocol.isText ? TEXT_OVERHEAD : 1);
  const { readMaxBytes } = limitsOf(method);
  if (announced > readMaxBytes + ENVELOPE_HEAD) throw tooLarge(readMaxBytes);
}

async function openMessage(call: Readable, { flags, data }: Envelope): Promise<Opened> {
  const { method, spoken, encoding, values } = call;
  const limits = limitsFor(method, values);
  const isCompressed = (flags & COMPRESSED_FLAG) !== 0;
  if (isCompressed && encoding !== 'gzip') throw unreadable();
  const message = isCompressed ? await gunzip(data, limits) : data;
  if (spoken.codec === 'json') return { bytes: message, json: jsonIn(message, limits) };
  checkMessage(method, message, 'proto', limits);
  return { bytes: message };
}

/** The JSON that a message is, read as a REST body is. */
function jsonIn(message: Uint8Array, { jsonMaxBytes, maxNodes }: MessageLimits): Json {
  if (message.length > jsonMaxBytes) throw tooLarge(jsonMaxBytes);
  const { buffer, byteOffset, length } = message;
  const { value, isTooDeep } = parseJson(Buffer.from(buffer, byteOffset, length), 'message', maxNodes);
  if (isTooDeep) throw tooDeep();
  return value;
}

/**
 * Throws if a request message holds more than `limits` allow, or nests too deep: small messages can hold so many
 * values that making objects of them would block the process.
 */
function checkMessage(
  method: DescMethod,
  message: Uint8Array,
  codec: CodecName,
  { readMaxBytes, jsonMaxBytes, maxNodes }: MessageLimits,
): void {
  const maxBytes = codec === 'json' ? jsonMaxBytes : readMaxBytes;
  if (message.length > maxBytes) throw tooLarge(maxBytes);
  const limits = { maxNodes, maxDepth: MAX_DEPTH };
  const excess =
    codec === 'json' ? scanJson(message, limits).excess : messageExcess(message, method.input, limits);
  if (excess === 'nodes') throw failed(Reason.TOO_LARGE, `The message holds more than ${maxNodes} values`);
  if (excess === 'depth') throw tooDeep();
}

function tooDeep(): ConnectError {
  return invalid([{ path: '', code: 'custom', message: `Expected a message at most ${MAX_DEPTH} deep` }]);
}

/** A body or a query that is a message. */
function wholeOf(data: Uint8Array, { encoding }: Readable): Envelope {
  return { flags: encoding === 'gzip' ? COMPRESSED_FLAG : 0, data };
}

/**
 * The one message in a body of envelopes. Looks at no more than two: millions of empty ones would block the process.
 */
function onlyIn(body: Uint8Array, endFlag: number, { method, values }: Readable): Envelope {
  const { readMaxBytes } = limitsFor(method, values);
  const kind = method.methodKind.replace('_', '-');
  let only: Envelope | undefined;
  for (let at = 0; at < body.length; ) {
    const head = body.subarray(at, at + ENVELOPE_HEAD);
    if (head.length < ENVELOPE_HEAD) throw incomplete();
    const length = new DataView(body.buffer, head.byteOffset).getUint32(1);
    if (length > readMaxBytes) throw tooLarge(readMaxBytes);
    const data = body.subarray(at + ENVELOPE_HEAD, at + ENVELOPE_HEAD + length);
    if (data.length < length) throw incomplete();
    at += ENVELOPE_HEAD + length;
    const [flags = 0] = head;
    if (endFlag !== 0 && (flags & endFlag) === endFlag) continue;
    if (only !== undefined) throw protocolError(`received extra input message for ${kind} method`);
    only = { flags, data };
  }
  if (only === undefined) throw protocolError(`missing input message for ${kind} method`);
  return only;
}

function protocolError(problem: string, code = Code.Unimplemented): ConnectError {
  return new ConnectError(`protocol error: ${problem}`, code);
}

function incomplete(): ConnectError {
  return protocolError('incomplete envelope', Code.InvalidArgument);
}

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

/** Gzip for messages that come in a stream: each is checked as soon as it is decompressed. */
export function checkedGzip(method: DescMethod): typeof compressionGzip {
  return {
    ...compressionGzip,
    async decompress(bytes) {
      const limits = limitsOf(method);
      const message = await gunzip(bytes, limits);
      // Which codec it is in is not known here. Some binary messages begin as JSON does, too.
      checkMessage(method, message, 'proto', limits);
      const start = message.find((byte) => !whitespace.has(byte));
      if (start === OPENING_BRACE) checkMessage(method, message, 'json', limits);
      return message;
    },
  };
}

const OPENING_BRACE = 0x7b;
const whitespace = new Set([0x20, 0x09, 0x0a, 0x0d]);

/** The bytes of a body in base64. Throws BAD_REQUEST if it is not. */
function fromText(body: Buffer): Buffer {
  const text = body.toString('latin1');
  if (text.length % 4 !== 0 || !base64.test(text)) throw unreadable();
  return Buffer.from(text, 'base64');
}

const base64 = /^[A-Za-z0-9+/]*={0,2}$/;

/** How much larger base64 is. */
const TEXT_OVERHEAD = 4 / 3;

/** The bytes are no message of the RPC. */
export function unreadable(cause?: unknown): ConnectError {
  return failed(Reason.BAD_REQUEST, "The message can't be read", { cause });
}

/** The failure of a message that is larger than `limit` bytes. */
function tooLarge(limit: number): ConnectError {
  return failed(Reason.TOO_LARGE, `The message is larger than ${limit} bytes`);
}

function asCanceled(error: unknown): unknown {
  return error instanceof CutOff ? new ConnectError(error.message, Code.Canceled) : error;
}

function limitsFor(method: DescMethod, values: ContextValues): MessageLimits {
  return limitsOf(method, { keyless: !isKnown(values) });
}

function isKnown(values: ContextValues): boolean {
  return callerIfAny({ values })?.keyId !== undefined;
}

/** The bytes before each message of gRPC, and of Connect's streams: one of flags, four of length. */
const ENVELOPE_HEAD = 5;

type Envelope = { flags: number; data: Uint8Array };

/** A message as it is sent, and where it is JSON, what it says. */
type Opened = { bytes: Uint8Array; json?: Json };

/** How the message of a call is to be read: `encoding` is what its headers or its query name. */
type Readable = {
  method: DescMethod;
  spoken: Spoken;
  encoding: string | null;
  values: ContextValues;
};

/** A call from the network, by Node's request and response. */
export type Received = { request: Request; response: ServerResponse; values: ContextValues };
