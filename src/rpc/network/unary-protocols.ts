import type { ConnectError } from '@connectrpc/connect';
import {
  type compressionNegotiate,
  type EnvelopedMessage,
  encodeEnvelope,
  envelopeCompress,
  mergeNonProtocolHeaders,
  type UniversalServerResponse,
} from '@connectrpc/connect/protocol';
import * as connect from '@connectrpc/connect/protocol-connect';
import * as grpc from '@connectrpc/connect/protocol-grpc';
import * as grpcWeb from '@connectrpc/connect/protocol-grpc-web';
import { withFailure } from '../errors.ts';
import { ENVELOPE_HEAD } from './limits.ts';
import { trailerError } from './trailer-error.ts';
import { WholeBody } from './whole-body.ts';

/** The protocol of a unary call by its media type, and whether its messages are binary; undefined if it is none, or in base64. */
export function protocolOf(
  contentType: string | null,
): { protocol: UnaryProtocol; binary: boolean } | undefined {
  const byConnect = connect.parseContentType(contentType);
  if (byConnect !== undefined)
    return byConnect.stream ? undefined : { protocol: connectProtocol, binary: byConnect.binary };
  const byGrpc = grpc.parseContentType(contentType);
  if (byGrpc !== undefined) return { protocol: grpcProtocol, binary: byGrpc.binary };
  const byWeb = grpcWeb.parseContentType(contentType);
  return byWeb === undefined || byWeb.text ? undefined : { protocol: webProtocol, binary: byWeb.binary };
}

const connectProtocol: UnaryProtocol = {
  name: 'connect',
  encoding: connect.headerUnaryEncoding,
  acceptEncoding: connect.headerUnaryAcceptEncoding,
  refusesBeforeGate: false,
  timeoutIn: (header, maxMs) => connect.parseTimeout(header.get(connect.headerTimeout), maxMs),
  // It was decompressed when it was received.
  messageIn: (data) => ({ flags: 0, data }),
  async answer(outcome, { binary, compression, limits }) {
    const failed = 'error' in outcome;
    const header = failed ? new Headers() : outcome.header;
    let body: Uint8Array;
    if (failed) {
      header.set(connect.headerContentType, connect.contentTypeUnaryJson);
      mergeNonProtocolHeaders(header, outcome.error.metadata);
      body = connect.errorToJsonBytes(outcome.error, undefined);
    } else {
      const { contentTypeUnaryProto, contentTypeUnaryJson } = connect;
      header.set(connect.headerContentType, binary ? contentTypeUnaryProto : contentTypeUnaryJson);
      for (const [name, value] of outcome.trailer)
        header.append(`${connect.headerUnaryTrailerPrefix}${name}`, value);
      body = outcome.data;
    }
    if (compression.response !== null && body.byteLength >= limits.compressMinBytes) {
      body = await compression.response.compress(body);
      header.set(connect.headerUnaryEncoding, compression.response.name);
    }
    header.set(connect.headerUnaryContentLength, String(body.byteLength));
    const status = failed ? connect.codeToHttpStatus(outcome.error.code) : 200;
    return { status, header, body: new WholeBody(() => body) };
  },
};

const ofGrpc = {
  encoding: grpc.headerEncoding,
  acceptEncoding: grpc.headerAcceptEncoding,
  refusesBeforeGate: true,
  timeoutIn: (header: Headers, maxMs: number) => grpc.parseTimeout(header.get(grpc.headerTimeout), maxMs),
  messageIn: onlyMessage,
};

const grpcProtocol: UnaryProtocol = {
  ...ofGrpc,
  name: 'grpc',
  async answer(outcome, facts) {
    const type = facts.binary ? grpc.contentTypeProto : grpc.contentTypeJson;
    const { header, trailer, body } = await inGrpc(outcome, facts, type, trailerError);
    return { status: 200, header, trailer, body: new WholeBody(() => body) };
  },
};

/** Its trailers come as the last part of the body. */
const webProtocol: UnaryProtocol = {
  ...ofGrpc,
  name: 'grpc-web',
  async answer(outcome, facts) {
    const type = facts.binary ? grpcWeb.contentTypeProto : grpcWeb.contentTypeJson;
    const { header, trailer, body } = await inGrpc(outcome, facts, type, withFailure);
    const last = encodeEnvelope(grpcWeb.trailerFlag, grpcWeb.trailerSerialize(trailer));
    return { status: 200, header, body: new WholeBody(() => Buffer.concat([body, last])) };
  },
};

/** An answer as both kinds of gRPC have it. Every failure has a detail. */
async function inGrpc(
  outcome: Outcome,
  { compression, limits }: AnswerFacts,
  contentType: string,
  detailed: (error: ConnectError) => ConnectError,
) {
  const failed = 'error' in outcome;
  const { header, trailer } = failed ? { header: new Headers(), trailer: new Headers() } : outcome;
  header.set(grpc.headerContentType, contentType);
  if (compression.response !== null) header.set(grpc.headerEncoding, compression.response.name);
  if (compression.error !== undefined) {
    const known = limits.acceptCompression.map(({ name }) => name);
    header.set(grpc.headerAcceptEncoding, known.join(','));
  }
  if (failed) {
    grpc.setTrailerStatus(trailer, detailed(outcome.error));
    return { header, trailer, body: new Uint8Array() };
  }
  trailer.set(grpc.headerGrpcStatus, grpc.grpcStatusOk);
  const reply = { flags: 0, data: outcome.data };
  const sent = await envelopeCompress(reply, compression.response, limits.compressMinBytes);
  return { header, trailer, body: encodeEnvelope(sent.flags, sent.data) };
}

/** The message, if the bytes are exactly one of a permitted size: a byte of flags, four of length, the data. */
function onlyMessage(bytes: Uint8Array, readMaxBytes: number): EnvelopedMessage | undefined {
  const data = bytes.subarray(ENVELOPE_HEAD);
  if (bytes.length < ENVELOPE_HEAD || data.length > readMaxBytes) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, ENVELOPE_HEAD);
  return view.getUint32(1) === data.length ? { flags: view.getUint8(0), data } : undefined;
}

/** What came of a call: its answer, of which `data` is the message, or why it failed. */
export type Outcome = { header: Headers; trailer: Headers; data: Uint8Array } | { error: ConnectError };

type AnswerFacts = {
  binary: boolean;
  compression: ReturnType<typeof compressionNegotiate>;
  limits: { acceptCompression: readonly { name: string }[]; compressMinBytes: number };
};

/** How a protocol has what a unary call needs. */
export type UnaryProtocol = {
  name: string;
  /** The names of its headers. */
  encoding: string;
  acceptEncoding: string;
  /** Whether headers that can't be read are refused before it is known who calls. */
  refusesBeforeGate: boolean;
  timeoutIn(header: Headers, maxMs: number): { timeoutMs?: number; error?: ConnectError | undefined };
  /** The one message of a body; undefined if it is not one. */
  messageIn(bytes: Uint8Array, readMaxBytes: number): EnvelopedMessage | undefined;
  answer(outcome: Outcome, facts: AnswerFacts): Promise<UniversalServerResponse>;
};
