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
import type { ServingOptions } from './limits.ts';
import { readAll, toStream } from './server.ts';

/**
 * Makes the router answer a unary gRPC call as what it is: one message and one answer.
 *
 * Connect's handler takes every gRPC call for a stream and passes it through a chain of async iterators,
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
      return isGrpc(request) && isIterable(body) ? answer(request, body) : handler(request);
    };
    handlers[index] = Object.assign(either, handler);
  }
}

/** Calls the method with the message in `body`, and makes gRPC's response of what it returns or throws. */
function unaryAnswer(spec: UnarySpec, options: ServingOptions, handler: UniversalHandlerFn) {
  const { method } = spec;
  const limits = validateUniversalHandlerOptions(options);
  const encodings = limits.acceptCompression.map(({ name }) => name).join(',');
  const serialization = createMethodSerializationLookup(method, limits.binaryOptions, undefined, limits);

  return async (
    request: UniversalServerRequest,
    stream: AsyncIterable<Uint8Array>,
  ): Promise<UniversalServerResponse> => {
    const { header } = request;
    const binary = parseContentType(header.get(headerContentType))?.binary ?? true;
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
      protocolName: 'grpc',
      requestMethod: request.method,
      requestHeader: header,
      requestSignal: request.signal,
      ...(timeout.timeoutMs !== undefined && { timeoutMs: timeout.timeoutMs }),
      ...(request.contextValues && { contextValues: request.contextValues }),
      responseHeader: {
        [headerContentType]: binary ? contentTypeProto : contentTypeJson,
        ...(compression.response && { [headerEncoding]: compression.response.name }),
      },
      responseTrailer: { [headerGrpcStatus]: grpcStatusOk },
    });
    const body: Uint8Array[] = [];
    try {
      if (compression.error) {
        context.responseHeader.set(headerAcceptEncoding, encodings);
        throw compression.error;
      }
      if (timeout.error) throw timeout.error;
      await options.requestGate(context);
      const bytes = await readAll(stream);
      const message = onlyMessage(bytes, limits.readMaxBytes);
      if (message === undefined) return await handler({ ...request, body: toStream([bytes]) });
      const { data } = await envelopeDecompress(message, compression.request, limits.readMaxBytes);
      const input = serialization.getI(binary).parse(data);
      const output = await invokeUnaryImplementation(spec, context, input, limits.interceptors);
      const reply = { flags: 0, data: serialization.getO(binary).serialize(output) };
      const sent = await envelopeCompress(reply, compression.response, limits.compressMinBytes);
      body.push(encodeEnvelope(sent.flags, sent.data));
    } catch (error) {
      setTrailerStatus(context.responseTrailer, asConnectError(error));
    } finally {
      context.abort(over);
    }
    return {
      status: 200,
      header: context.responseHeader,
      body: toStream(body),
      trailer: context.responseTrailer,
    };
  };
}

function isGrpc({ method, header }: UniversalServerRequest): boolean {
  return method === 'POST' && parseContentType(header.get(headerContentType)) !== undefined;
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

const ENVELOPE_HEAD = 5;

/** Made once: a signal that aborts without a reason makes one, with a stack trace. */
const over = new ConnectError('The call is over', Code.Canceled);

type UnarySpec = MethodImplSpec & { kind: 'unary' };
