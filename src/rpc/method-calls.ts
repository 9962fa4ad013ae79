import { AsyncLocalStorage } from 'node:async_hooks';
import { create, type DescMessage, type DescMethod, type Message } from '@bufbuild/protobuf';
import {
  Code,
  ConnectError,
  createContextKey,
  type HandlerContext,
  type Interceptor,
  type MethodImplSpec,
  type ServiceImplSpec,
  type StreamRequest,
  type UnaryRequest,
} from '@connectrpc/connect';

/**
 * The calls of all methods, with the interceptors around them: a message goes in and a message comes out. What leads
 * there, a protocol or the transport inside the process, costs a few microseconds more.
 */
export function createMethodCalls(
  services: readonly ServiceImplSpec[],
  interceptors: readonly Interceptor[],
): MethodCalls {
  const calls = new Map<DescMethod, MethodCall>();
  for (const spec of services.flatMap(({ methods }) => Object.values(methods))) {
    const innermost: MethodCall = (req) => invoke(spec, req);
    calls.set(
      spec.method,
      interceptors.reduceRight<MethodCall>((next, intercept) => intercept(next), innermost),
    );
  }
  return calls;
}

/** The context that a method gets. What it may set is made on demand: most methods set nothing, and some wait long. */
class CallContext implements HandlerContext {
  readonly #request: CallStart;
  #header: Headers | undefined;
  #trailer: Headers | undefined;

  constructor(request: CallStart) {
    this.#request = request;
  }

  get method() {
    return this.#request.method;
  }
  get service() {
    return this.#request.service;
  }
  get signal() {
    return this.#request.signal;
  }
  get requestMethod() {
    return this.#request.requestMethod;
  }
  get requestHeader() {
    return this.#request.header;
  }
  get values() {
    return this.#request.contextValues;
  }
  get url() {
    return this.#request.url;
  }
  get responseHeader() {
    this.#header ??= new Headers();
    return this.#header;
  }
  get responseTrailer() {
    this.#trailer ??= new Headers();
    return this.#trailer;
  }
  get protocolName() {
    return this.values.get(arrivalKey)?.protocolName ?? 'local';
  }
  timeoutMs() {
    const endsAt = this.values.get(arrivalKey)?.endsAt;
    return endsAt && endsAt - performance.now();
  }

  /** What every answer has beside its message. */
  answer() {
    return { service: this.service, header: this.responseHeader, trailer: this.responseTrailer };
  }
}

/** Set where a call comes over the network. */
export const arrivalKey = createContextKey<Arrival | undefined>(undefined, { description: 'arrival' });

function invoke(spec: MethodImplSpec, req: UnaryRequest | StreamRequest): ReturnType<MethodCall> {
  const context = new CallContext(req);
  const arrival = req.contextValues.get(arrivalKey);
  if (arrival !== undefined) arrival.context = context;
  if (spec.kind !== 'unary' || req.stream) return invokeStream(spec, req, context);
  const answer = (output: MessageInit) => {
    const message = create(spec.method.output, output);
    return { ...context.answer(), stream: false as const, method: spec.method, message };
  };
  // Not async: calls that wait would keep all of this.
  try {
    const output = spec.impl(req.message, context);
    return output instanceof Promise ? output.then(answer) : Promise.resolve(answer(output));
  } catch (error) {
    return Promise.reject(error);
  }
}

async function invokeStream(spec: MethodImplSpec, req: UnaryRequest | StreamRequest, context: CallContext) {
  if (spec.kind === 'client_streaming' && req.stream) {
    const output = create(spec.method.output, await spec.impl(req.message, context));
    return { ...context.answer(), stream: true as const, method: spec.method, message: single(output) };
  }
  if (spec.kind === 'server_streaming' && req.stream) {
    const input = await only(req.message);
    const output = endOnAbort(normalized(spec.method.output, spec.impl(input, context)), req.signal);
    // It is read after the interceptors have returned, and belongs to their call all the same.
    const inCall = AsyncLocalStorage.snapshot();
    const next = output.next.bind(output);
    output.next = () => inCall(next);
    return { ...context.answer(), stream: true as const, method: spec.method, message: output };
  }
  throw new ConnectError(`${spec.method.name} can't be called like this`, Code.Unimplemented);
}

/** Makes messages of what initializes them. */
export async function* normalized(
  schema: DescMessage,
  messages: AsyncIterable<MessageInit>,
): AsyncGenerator<Message> {
  for await (const message of messages) yield create(schema, message);
}

async function* single(message: Message): AsyncGenerator<Message> {
  yield message;
}

/** Ends the method's work when the caller goes away, which only the signal shows. */
async function* endOnAbort<T>(messages: AsyncIterable<T>, signal: AbortSignal): AsyncGenerator<T> {
  for await (const message of messages) {
    signal.throwIfAborted();
    yield message;
    signal.throwIfAborted();
  }
}

async function only<T>(messages: AsyncIterable<T>): Promise<T> {
  for await (const message of messages) return message;
  throw new ConnectError('The request message is missing', Code.InvalidArgument);
}

/**
 * How a call came. `endsAt`: its deadline by `performance.now()`, if it has one. `context` has the headers and trailers
 * that the method has set by now, which a failure has, too.
 */
export type Arrival = { protocolName: string; endsAt: number | undefined; context?: CallContext };

/** What of a request is known before its message. */
type CallStart = Omit<UnaryRequest | StreamRequest, 'message' | 'stream'>;

type MessageInit = Record<string, unknown>;

/** Runs the interceptors and the method. */
export type MethodCall = ReturnType<Interceptor>;

export type MethodCalls = ReadonlyMap<DescMethod, MethodCall>;
