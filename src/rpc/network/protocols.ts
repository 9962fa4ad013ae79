import { create, toBinary } from '@bufbuild/protobuf';
import type { ConnectError } from '@connectrpc/connect';
import { encodeEnvelope, mergeNonProtocolHeaders } from '@connectrpc/connect/protocol';
import {
  codeToHttpStatus,
  createEndStreamSerialization,
  endStreamFlag,
  errorToJsonBytes,
  parseTimeout as parseConnectTimeout,
} from '@connectrpc/connect/protocol-connect';
import {
  headerGrpcMessage,
  parseTimeout as parseGrpcTimeout,
  setTrailerStatus,
} from '@connectrpc/connect/protocol-grpc';
import { trailerFlag, trailerSerialize } from '@connectrpc/connect/protocol-grpc-web';
import { BadRequest_FieldViolationSchema } from '../../../gen/google/rpc/error_details_pb.js';
import { type Violation, ViolationCode, ViolationSchema } from '../../../gen/headlessforms/v1/errors_pb.js';
import { failureOf, fieldViolationOf, refailed } from '../../domain/errors/failure.ts';
import { trailerLimits } from '../../domain/limits/limits.ts';

// What Connect keeps private is imported here alone. A test compares what is made of it with Connect's own handlers.

/** The protocol and the codec that a media type names; undefined if it is not that of a call. */
export function spokenBy(contentType: string | null | undefined): Spoken | undefined {
  const match = mediaType.exec(contentType ?? '');
  if (match === null) return undefined;
  const [, family, json, bare] = match;
  return speaking(family ?? bare ?? 'unary', json === undefined ? 'proto' : 'json');
}

/** The same of a call by GET, whose query names its codec. */
export function spokenInQuery(query: URLSearchParams): Spoken | undefined {
  const encoding = query.get('encoding');
  return encoding === 'proto' || encoding === 'json' ? speaking('unary', encoding) : undefined;
}

const mediaType =
  /^application\/(?:(?:(connect|grpc(?:-web(?:-text)?)?)\+)?(?:proto|(json)(?:; ?charset=utf-?8)?)|(grpc(?:-web(?:-text)?)?))$/i;

function speaking(family: string, codec: CodecName): Spoken | undefined {
  const protocol = protocols[family.toLowerCase()];
  return protocol && { protocol, codec };
}

/** The deadline of a call in milliseconds from now, at most `maxMs`; or why what its headers say is none. */
export function timeoutIn({ timeout }: Protocol, header: Headers, maxMs: number): TimeOut {
  const parse = timeout === 'grpc-timeout' ? parseGrpcTimeout : parseConnectTimeout;
  const { timeoutMs, error } = parse(header.get(timeout), Number.POSITIVE_INFINITY);
  return timeoutMs === undefined ? { error } : { timeoutMs: Math.min(timeoutMs, maxMs) };
}

/** The answer to a call that is refused unread. By gRPC all of it is in its headers. */
export function refusalIn({ protocol, codec }: Spoken, error: ConnectError): Answer {
  const [header, trailer, content] = [new Headers(), new Headers(), protocol.contentOf(error)];
  const answer = protocol.answer({ header, trailer, content, error }, codec);
  for (const [name, value] of answer.trailer ?? []) header.set(name, value);
  return answer;
}

/** Sets the status in gRPC's trailers. Some libraries show the message of a failure as it comes. */
function setStatus(trailer: Headers, error: ConnectError | undefined): void {
  setTrailerStatus(trailer, error);
  if (error !== undefined) trailer.set(headerGrpcMessage, printable(encodeURIComponent(error.rawMessage)));
}

/** Makes what Connect sets there as `grpc-message` printable. */
export function keepPrintable(trailer: Headers): void {
  const set = trailer.set.bind(trailer);
  const setPrintable = (name: string, value: string) =>
    set(name, name === headerGrpcMessage ? printable(value) : value);
  Object.assign(trailer, { set: setPrintable });
}

/**
 * A message as gRPC encodes it, of one in which more is percent-encoded: only bytes outside of 0x20 to 0x7E, and `%`.
 */
function printable(encoded: string): string {
  return encoded.replaceAll(/%(?:2[0-46-9A-F]|[3-6][0-9A-F]|7[0-9A-E])/g, decodeURIComponent);
}

const connect: Protocol = {
  name: 'connect',
  encoding: 'content-encoding',
  acceptEncoding: 'accept-encoding',
  timeout: 'connect-timeout-ms',
  contentOf: (error) => errorToJsonBytes(error, undefined),
  answer({ header, trailer, content, error, isCompressed }, codec) {
    if (error !== undefined) mergeNonProtocolHeaders(header, error.metadata);
    for (const [name, value] of trailer) header.append(`trailer-${name}`, value);
    header.set('content-type', `application/${error === undefined ? codec : 'json'}`);
    if (isCompressed) header.set('content-encoding', 'gzip');
    header.set('content-length', String(content.length));
    return { status: error === undefined ? 200 : codeToHttpStatus(error.code), header, body: content };
  },
};

/** Connect's own handlers answer its streams, but for those that are refused unread. */
const connectStream: Protocol = {
  ...connect,
  encoding: 'connect-content-encoding',
  acceptEncoding: 'connect-accept-encoding',
  isStream: true,
  endFlag: endStreamFlag,
  contentOf: (error) => endStream.serialize({ error, metadata: new Headers() }),
  answer({ header, content }, codec) {
    header.set('content-type', `application/connect+${codec}`);
    return { status: 200, header, body: encodeEnvelope(endStreamFlag, content) };
  },
};

const endStream = createEndStreamSerialization(undefined);

const grpc: Protocol = {
  name: 'grpc',
  encoding: 'grpc-encoding',
  acceptEncoding: 'grpc-accept-encoding',
  timeout: 'grpc-timeout',
  endFlag: 0,
  contentOf: () => new Uint8Array(),
  answer(reply, codec) {
    const { header, trailer, error } = reply;
    header.set('content-type', `application/grpc+${codec}`);
    setStatus(trailer, error && trailerError(error));
    return { status: 200, header, trailer, body: enveloped(reply) };
  },
};

/** gRPC whose trailers are the last part of the body, which is all in base64 if it is text. */
function grpcWeb(isText: boolean): Protocol {
  return {
    ...grpc,
    name: 'grpc-web',
    endFlag: trailerFlag,
    isText,
    answer(reply, codec) {
      const { header, trailer, error } = reply;
      header.set('content-type', `application/grpc-web${isText ? '-text' : ''}+${codec}`);
      setStatus(trailer, error);
      const body = Buffer.concat([enveloped(reply), encodeEnvelope(trailerFlag, trailerSerialize(trailer))]);
      return { status: 200, header, body: isText ? inBase64(body) : body };
    },
  };
}

/** Bytes as gRPC-Web in text has them. */
export function inBase64({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(Buffer.from(buffer, byteOffset, byteLength).toString('base64'), 'latin1');
}

/** The message of an answer by gRPC, which a failure has not, with what its headers say of encodings. */
function enveloped({ header, content, error, isCompressed, encoding }: Reply): Uint8Array {
  const known = error?.metadata.get('grpc-accept-encoding');
  if (known) header.set('grpc-accept-encoding', known);
  if (encoding !== undefined) header.set('grpc-encoding', encoding);
  return error === undefined ? encodeEnvelope(isCompressed ? COMPRESSED_FLAG : 0, content) : content;
}

/** By the beginning of their media types. */
const protocols: Record<string, Protocol> = {
  unary: connect,
  connect: connectStream,
  grpc,
  'grpc-web': grpcWeb(false),
  'grpc-web-text': grpcWeb(true),
};

export { encodeEnvelope };

/** What a call is refused in that says nothing of its protocol. */
export const connectJson: Spoken = { protocol: connect, codec: 'json' };

/** Of an envelope: it holds a compressed message. */
export const COMPRESSED_FLAG = 1;

/** How a protocol has what a call needs. */
export type Protocol = {
  name: 'connect' | 'grpc' | 'grpc-web';
  /** The names of its headers. */
  encoding: string;
  acceptEncoding: string;
  timeout: string;
  /** Whether it is that of Connect for streams, which differs. */
  isStream?: boolean;
  /** Messages come in envelopes, and those with this flag hold none; undefined: the body is the message. */
  endFlag?: number;
  /** Whether all bytes are in base64, as old browsers need it. */
  isText?: boolean;
  /** What the body of a failure has. */
  contentOf(error: ConnectError): Uint8Array;
  answer(reply: Reply, codec: CodecName): Answer;
};

export type CodecName = 'proto' | 'json';

export type Spoken = { protocol: Protocol; codec: CodecName };

/** What a call returned or failed with. */
export type Reply = {
  header: Headers;
  trailer: Headers;
  /** The message, or what `contentOf` gave. */
  content: Uint8Array;
  error?: ConnectError;
  /** Whether `content` is compressed, by the encoding that the caller takes, if any. */
  isCompressed?: boolean;
  encoding?: 'gzip' | undefined;
};

/** As it is sent over HTTP. */
export type Answer = { status: number; header: Headers; trailer?: Headers; body: Uint8Array };

type TimeOut = { timeoutMs?: number; error?: ConnectError | undefined };

/**
 * An error as gRPC's trailers hold it: with details that take some kilobytes. Violations that do not fit
 * are without what came; of still more, the last one says how many there are; the standard detail has those for
 * which ours leaves room. gRPC's libraries refuse trailers that are larger, and servers reset the stream.
 */
export function trailerError(error: ConnectError): ConnectError {
  const failure = failureOf(error);
  if (failure === undefined) return error;
  const message = shortened(error.rawMessage);
  const violations = fittingWithReceived(failure.violations);
  const left =
    trailerLimits.violationBytes - violations.reduce((sum, violation) => sum + bytesInFailure(violation), 0);
  const listed = left < MIN_BYTES ? [] : fitting(failure.violations, left, bytesInBadRequest);
  const cut = violations !== failure.violations || listed !== failure.violations;
  if (!cut && message === error.rawMessage) return error;
  return refailed(error, { ...failure, violations }, { message, listed });
}

function fittingWithReceived(violations: Violation[]): Violation[] {
  const whole = fitting(violations, trailerLimits.violationBytes, bytesInFailure);
  if (whole === violations) return violations;
  const bare = violations.map(({ path, code, message }) => create(ViolationSchema, { path, code, message }));
  return fitting(bare, trailerLimits.violationBytes, bytesInFailure);
}

/** The violations that fit into `room` bytes, and one more that says how many do not. */
function fitting(
  violations: Violation[],
  room: number,
  bytesOf: (violation: Violation) => number,
): Violation[] {
  let bytes = 0;
  for (const [index, violation] of violations.entries()) {
    bytes += bytesOf(violation);
    if (bytes <= room) continue;
    const message = `There are ${violations.length - index} more problems`;
    return [...violations.slice(0, index), create(ViolationSchema, { code: ViolationCode.CUSTOM, message })];
  }
  return violations;
}

function bytesInFailure(violation: Violation): number {
  return toBinary(ViolationSchema, violation).length + ITEM_HEAD;
}

function bytesInBadRequest(violation: Violation): number {
  const item = create(BadRequest_FieldViolationSchema, fieldViolationOf(violation));
  return toBinary(BadRequest_FieldViolationSchema, item).length + ITEM_HEAD;
}

/** The tag and the length before a message in a list. */
const ITEM_HEAD = 3;

/** Trailers hold a message percent-encoded. */
function shortened(message: string): string {
  if (encodeURIComponent(message).length <= trailerLimits.encodedMessage) return message;
  return `${message.slice(0, trailerLimits.encodedMessage / LONGEST_ENCODED).toWellFormed()}…`;
}

/** What it takes to say how many violations are left out. */
const MIN_BYTES = 80;

/** Of a character that is percent-encoded. */
const LONGEST_ENCODED = 9;
