import type { DescMethod, DescMethodUnary } from '@bufbuild/protobuf';
import { Code, ConnectError, type ConnectRouter, createContextValues } from '@connectrpc/connect';
import {
  compressionNegotiate,
  createDeadlineSignal,
  createMethodSerializationLookup,
  envelopeDecompress,
  type UniversalHandlerFn,
  type UniversalServerRequest,
  type UniversalServerResponse,
  validateUniversalHandlerOptions,
} from '@connectrpc/connect/protocol';
import { unreadable } from '../errors.ts';
import { arrivalKey, CallContext, type MethodCall, type MethodCalls } from '../method-calls.ts';
import type { ServingOptions } from './limits.ts';
import { type Outcome, protocolOf, type UnaryProtocol } from './unary-protocols.ts';
import { readAll, WholeBody } from './whole-body.ts';

/**
 * Makes the router answer a unary call as what it is: one message and one answer. A message that can't be read is its
 * caller's mistake, where gRPC's libraries say `INTERNAL`.
 *
 * Connect's handlers take every call for a stream: those of gRPC pass it through a chain of async iterators, which
 * halves the rate of accepting, and those of Connect make signals, headers and iterators that cost a fifth of it. A
 * call by GET, in base64, or with a body that is not one message is still left to them.
 */
export function answerUnary(
  { handlers }: ConnectRouter,
  calls: MethodCalls,
  optionsOf: (method: DescMethod) => ServingOptions,
): void {
  for (const [index, handler] of handlers.entries()) {
    const { method } = handler;
    const call = calls.get(method);
    if (!isUnary(method) || call === undefined) continue;
    const answer = unaryAnswer(method, { call, byConnect: handler, options: optionsOf(method) });
    const either: UniversalHandlerFn = (request) => {
      const { body } = request;
      const spoken = request.method === 'POST' ? protocolOf(request.header.get('content-type')) : undefined;
      return spoken !== undefined && isIterable(body) ? answer(request, spoken, body) : handler(request);
    };
    handlers[index] = Object.assign(either, handler);
  }
}

/** Calls the method with the message in `body`, and makes a response of what it returns or throws. */
function unaryAnswer(method: DescMethodUnary, { call, byConnect, options }: UnaryOptions) {
  const limits = validateUniversalHandlerOptions(options);
  const serialization = createMethodSerializationLookup(method, limits.binaryOptions, undefined, limits);

  return async (
    request: UniversalServerRequest,
    { protocol, binary }: Spoken,
    stream: AsyncIterable<Uint8Array>,
  ): Promise<UniversalServerResponse> => {
    const { header, contextValues = createContextValues() } = request;
    const { timeoutMs, error: badTimeout } = protocol.timeoutIn(header, limits.maxTimeoutMs);
    const compression = compressionNegotiate(
      limits.acceptCompression,
      header.get(protocol.encoding),
      header.get(protocol.acceptEncoding),
      protocol.acceptEncoding,
    );
    const refusal = compression.error ?? badTimeout;
    const deadline = timeoutMs === undefined ? undefined : createDeadlineSignal(timeoutMs);
    const endsAt = timeoutMs === undefined ? undefined : performance.now() + timeoutMs;
    contextValues.set(arrivalKey, { protocolName: protocol.name, endsAt });
    const started = {
      service: method.parent,
      method,
      requestMethod: request.method,
      url: request.url,
      signal: deadline ? AbortSignal.any([request.signal, deadline.signal]) : request.signal,
      header,
      contextValues,
    };
    let outcome: Outcome;
    try {
      if (protocol.refusesBeforeGate && refusal !== undefined) throw refusal;
      await options.requestGate(new CallContext(started));
      if (refusal !== undefined) throw refusal;
      const bytes = await readAll(stream);
      const message = protocol.messageIn(bytes, limits.readMaxBytes);
      if (message === undefined) return await byConnect({ ...request, body: new WholeBody(() => bytes) });
      const input = await readable(async () => {
        const { data } = await envelopeDecompress(message, compression.request, limits.readMaxBytes);
        return serialization.getI(binary).parse(data);
      });
      const output = await call({ ...started, stream: false, message: input });
      if (output.stream) throw new TypeError(`${method.name} answered with a stream`);
      outcome = { ...output, data: serialization.getO(binary).serialize(output.message) };
    } catch (error) {
      outcome = { error: asConnectError(error) };
    } finally {
      deadline?.cleanup();
    }
    return protocol.answer(outcome, { binary, compression, limits });
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

function isUnary(method: DescMethod): method is DescMethod & DescMethodUnary {
  return method.methodKind === 'unary';
}

function isIterable(body: UniversalServerRequest['body']): body is AsyncIterable<Uint8Array> {
  return typeof body === 'object' && body !== null && Symbol.asyncIterator in body;
}

/** Of what is thrown, only what was meant for the caller reaches it. */
function asConnectError(error: unknown): ConnectError {
  return error instanceof ConnectError ? error : new ConnectError('internal error', Code.Internal);
}

type Spoken = { protocol: UnaryProtocol; binary: boolean };

type UnaryOptions = { call: MethodCall; byConnect: UniversalHandlerFn; options: ServingOptions };
