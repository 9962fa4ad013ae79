import type { DescMethod } from '@bufbuild/protobuf';
import {
  Code,
  ConnectError,
  type ConnectRouter,
  createHandlerContext,
  type MethodImplSpec,
  type ServiceImplSpec,
} from '@connectrpc/connect';
import {
  compressionNegotiate,
  createMethodSerializationLookup,
  type EnvelopedMessage,
  encodeEnvelope,
  envelopeCompress,
  envelopeDecompress,
  invokeUnaryImplementation,
  type UniversalHandlerFn,
  type UniversalServerRequest,
  type UniversalServerResponse,
  validateUniversalHandlerOptions,
} from '@connectrpc/connect/protocol';
import {
  contentTypeJson,
  contentTypeProto,
  grpcStatusOk,
  headerAcceptEncoding,
  headerContentType,
  headerEncoding,
  headerGrpcStatus,
  headerTimeout,
  parseContentType,
  parseTimeout,
  setTrailerStatus,
} from '@connectrpc/connect/protocol-grpc';
import {
  contentTypeJson as contentTypeWebJson,
  contentTypeProto as contentTypeWebProto,
  parseContentType as parseWebContentType,
  trailerFlag,
  trailerSerialize,
} from '@connectrpc/connect/protocol-grpc-web';
import { unreadable, withFailure } from '../errors.ts';
import { ENVELOPE_HEAD, type ServingOptions } from './limits.ts';
import { trailerError } from './trailer-error.ts';
import { readAll, WholeBody } from './whole-body.ts';

/**
 * Makes the router answer a unary call by gRPC or gRPC-Web as what it is: one message and one answer. Every failure
 * has a detail, and a message that can't be read is its caller's mistake, where gRPC's libraries say `INTERNAL`.
 *
 * Connect's handler takes every such call for a stream and passes it through a chain of async iterators,
 * which costs more than all the rest of the call: without this the rate of accepting by gRPC falls to half.
 * A body that is not one message is still left to it.
 */
export function answerUnaryGrpc(
  { handlers }: ConnectRouter,
  services: readonly ServiceImplSpec[],
  optionsOf: (method: DescMethod) => ServingOptions,
): void {
  const specs = new Map(
    services.flatMap(({ methods }) => Object.values(methods)).map((spec) => [spec.method, spec]),
  );
  for (const [index, handler] of handlers.entries()) {
    const spec = specs.get(handler.method);
    if (spec?.kind !== 'unary') continue;
    const answer = unaryAnswer(spec, optionsOf(spec.method), handler);
    const either: UniversalHandlerFn = async (request) => {
      const { body } = request;
      const wire = wireOf(request);
      return wire !== undefined && isIterable(body) ? answer(request, wire, body) : handler(request);
    };
    handlers[index] = Object.assign(either, handler);
  }
}

/** Calls the method with the message in `body`, and makes a response of what it returns or throws. */
function unaryAnswer(spec: UnarySpec, options: ServingOptions, handler: UniversalHandlerFn) {
  const { method } = spec;
  const limits = validateUniversalHandlerOptions(options);
  const encodings = limits.acceptCompression.map(({ name }) => name).join(',');
  const serialization = createMethodSerializationLookup(method, limits.binaryOptions, undefined, limits);

  return async (
    request: UniversalServerRequest,
    { binary, isWeb }: Wire,
    stream: AsyncIterable<Uint8Array>,
  ): Promise<UniversalServerResponse> => {
    const { header } = request;
    const timeout = parseTimeout(header.get(headerTimeout), limits.maxTimeoutMs);
    const [encoding, accepted] = [header.get(headerEncoding), header.get(headerAcceptEncoding)];
    const compression = compressionNegotiate(
      limits.acceptCompression,
      encoding,
      accepted,
      headerAcceptEncoding,
    );
    const context = createHandlerContext({
      service: method.parent,
      method,
      url: request.url,
      protocolName: isWeb ? 'grpc-web' : 'grpc',
      requestMethod: request.method,
      requestHeader: header,
      requestSignal: request.signal,
      ...(timeout.timeoutMs !== undefined && { timeoutMs: timeout.timeoutMs }),
      ...(request.contextValues && { contextValues: request.contextValues }),
      responseHeader: {
        [headerContentType]: contentTypeOf(isWeb, binary),
        ...(compression.response && { [headerEncoding]: compression.response.name }),
      },
      responseTrailer: { [headerGrpcStatus]: grpcStatusOk },
    });
    const { responseHeader, responseTrailer } = context;
    let body: Uint8Array = new Uint8Array();
    try {
      if (compression.error) {
        responseHeader.set(headerAcceptEncoding, encodings);
        throw compression.error;
      }
      if (timeout.error) throw timeout.error;
      await options.requestGate(context);
      const bytes = await readAll(stream);
      const message = onlyMessage(bytes, limits.readMaxBytes);
      if (message === undefined) return await handler({ ...request, body: new WholeBody(() => bytes) });
      const { request: encoded } = compression;
      const input = await readable(async () => {
        const { data } = await envelopeDecompress(message, encoded, limits.readMaxBytes);
        return serialization.getI(binary).parse(data);
      });
      const output = await invokeUnaryImplementation(spec, context, input, limits.interceptors);
      const reply = { flags: 0, data: serialization.getO(binary).serialize(output) };
      const sent = await envelopeCompress(reply, compression.response, limits.compressMinBytes);
      body = encodeEnvelope(sent.flags, sent.data);
    } catch (error) {
      const failure = asConnectError(error);
      setTrailerStatus(responseTrailer, isWeb ? withFailure(failure) : trailerError(failure));
    } finally {
      context.abort();
    }
    if (!isWeb)
      return {
        status: 200,
        header: responseHeader,
        body: new WholeBody(() => body),
        trailer: responseTrailer,
      };
    const trailer = encodeEnvelope(trailerFlag, trailerSerialize(responseTrailer));
    return { status: 200, header: responseHeader, body: new WholeBody(() => Buffer.concat([body, trailer])) };
  };
}

/** What the libraries say about a message is their caller's mistake, though they call some of it internal. */
async function readable<T>(read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    throw error instanceof ConnectError && error.code !== Code.Internal ? error : unreadable(error);
  }
}

/** How the request speaks gRPC; undefined if it does not, or as text, which is left to Connect. */
function wireOf({ method, header }: UniversalServerRequest): Wire | undefined {
  if (method !== 'POST') return undefined;
  const type = header.get(headerContentType);
  const grpc = parseContentType(type);
  if (grpc !== undefined) return { binary: grpc.binary, isWeb: false };
  const web = parseWebContentType(type);
  return web === undefined || web.text ? undefined : { binary: web.binary, isWeb: true };
}

function contentTypeOf(isWeb: boolean, binary: boolean): string {
  if (isWeb) return binary ? contentTypeWebProto : contentTypeWebJson;
  return binary ? contentTypeProto : contentTypeJson;
}

function isIterable(body: UniversalServerRequest['body']): body is AsyncIterable<Uint8Array> {
  return typeof body === 'object' && body !== null && Symbol.asyncIterator in body;
}

/** The message, if the bytes are exactly one of a permitted size: a byte of flags, four of length, the data. */
function onlyMessage(bytes: Uint8Array, readMaxBytes: number): EnvelopedMessage | undefined {
  const data = bytes.subarray(ENVELOPE_HEAD);
  if (bytes.length < ENVELOPE_HEAD || data.length > readMaxBytes) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, ENVELOPE_HEAD);
  return view.getUint32(1) === data.length ? { flags: view.getUint8(0), data } : undefined;
}

/** Of what is thrown, only what was meant for the caller reaches it. */
function asConnectError(error: unknown): ConnectError {
  return error instanceof ConnectError ? error : new ConnectError('internal error', Code.Internal);
}

/** How a request speaks gRPC. */
type Wire = { binary: boolean; isWeb: boolean };

type UnarySpec = MethodImplSpec & { kind: 'unary' };
