import { create, type DescMessage, type DescMethod, type Message } from '@bufbuild/protobuf';
import {
  Code,
  ConnectError,
  type ContextValues,
  createContextValues,
  type HandlerContext,
  type Interceptor,
  type MethodImplSpec,
  type ServiceImplSpec,
  type StreamRequest,
  type StreamResponse,
  type Transport,
  type UnaryRequest,
  type UnaryResponse,
} from '@connectrpc/connect';
import { accessLineKey } from '../telemetry/access-log.ts';
import { clientAddressKey, continuationKey, hostKey } from './context.ts';

/**
 * A transport to services in this process: it runs the interceptors and the method on the message
 * itself, without serializing, for a few microseconds a call.
 *
 * Its callers are the REST gateway and the hosted pages, so the headers `x-forwarded-for`, `host` and `x-continuation`
 * are believed. Messages are not copied: neither side may change one after handing it over.
 */
export function createLocalTransport(services: ServiceImplSpec[], interceptors: Interceptor[]): Transport {
  const chains = new Map<DescMethod, Call>();
  for (const spec of services.flatMap(({ methods }) => Object.values(methods))) {
    const innermost: Call = (req) => invoke(spec, req);
    chains.set(
      spec.method,
      interceptors.reduceRight<Call>((next, intercept) => intercept(next), innermost),
    );
  }

  function callOf(method: DescMethod): Call {
    const call = chains.get(method);
    if (call === undefined) throw new ConnectError(`${method.name} is not served`, Code.Unimplemented);
    return call;
  }

  return {
    unary(method, signal, timeoutMs, header, input, values) {
      type Response = UnaryResponse<typeof method.input, typeof method.output>;
      // Not async: calls that wait would keep all of this.
      try {
        const request = requestOf(method, signal, timeoutMs, header, values);
        const message = create(method.input, input);
        return callOf(method)({ ...request, stream: false, method, message }) as Promise<Response>;
      } catch (error) {
        return Promise.reject(error);
      }
    },
    async stream(method, signal, timeoutMs, header, input, values) {
      const request = requestOf(method, signal, timeoutMs, header, values);
      const message = normalized(method.input, input);
      const response = await callOf(method)({ ...request, stream: true, method, message });
      return response as StreamResponse<typeof method.input, typeof method.output>;
    },
  };
}

/** What every call in this process begins with. Of its caller's `values` only the access line counts. */
export function requestOf(
  method: DescMethod,
  signal: AbortSignal | undefined,
  timeoutMs: number | undefined,
  init: ConstructorParameters<typeof Headers>[0],
  values?: ContextValues,
) {
  const header = init instanceof Headers ? init : new Headers(init);
  const contextValues = contextOfHeader(header);
  if (values !== undefined) contextValues.set(accessLineKey, values.get(accessLineKey));
  return {
    service: method.parent,
    requestMethod: 'POST',
    url: urlOf(method),
    signal: withDeadline(signal, timeoutMs),
    header,
    contextValues,
  };
}

/** Made once for each method: calls that wait keep it. */
function urlOf(method: DescMethod): string {
  const url = urls.get(method) ?? `local:/${method.parent.typeName}/${method.name}`;
  urls.set(method, url);
  return url;
}

const urls = new WeakMap<DescMethod, string>();

/** What the headers of a call in this process say of its client. */
export function contextOfHeader(header: Headers): ContextValues {
  const contextValues = createContextValues();
  const clientAddress = header.get('x-forwarded-for');
  if (clientAddress !== null) contextValues.set(clientAddressKey, clientAddress);
  contextValues.set(hostKey, header.get('host') ?? undefined);
  if (header.has('x-continuation')) contextValues.set(continuationKey, true);
  return contextValues;
}

function withDeadline(signal: AbortSignal | undefined, timeoutMs: number | undefined): AbortSignal {
  const signals = signal === undefined ? [] : [signal];
  if (timeoutMs !== undefined) signals.push(AbortSignal.timeout(timeoutMs));
  const [only] = signals;
  if (only === undefined) return new AbortController().signal;
  return signals.length === 1 ? only : AbortSignal.any(signals);
}

function invoke(spec: MethodImplSpec, req: UnaryRequest | StreamRequest): ReturnType<Call> {
  const context = new LocalContext(req);
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

async function invokeStream(spec: MethodImplSpec, req: UnaryRequest | StreamRequest, context: LocalContext) {
  if (spec.kind === 'client_streaming' && req.stream) {
    const output = create(spec.method.output, await spec.impl(req.message, context));
    return { ...context.answer(), stream: true as const, method: spec.method, message: single(output) };
  }
  if (spec.kind === 'server_streaming' && req.stream) {
    const input = await only(req.message);
    const message = normalized(spec.method.output, spec.impl(input, context));
    return {
      ...context.answer(),
      stream: true as const,
      method: spec.method,
      message: endOnAbort(message, req.signal),
    };
  }
  throw new ConnectError(`${spec.method.name} can't be called like this`, Code.Unimplemented);
}

/** The context that a method gets. What it may set is made on demand: most methods set nothing, and some wait long. */
class LocalContext implements HandlerContext {
  readonly #request: UnaryRequest | StreamRequest;
  readonly protocolName = 'local';
  #header: Headers | undefined;
  #trailer: Headers | undefined;

  constructor(request: UnaryRequest | StreamRequest) {
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
  timeoutMs(): undefined {
    return undefined;
  }

  /** What every answer has beside its message. */
  answer() {
    return { service: this.service, header: this.responseHeader, trailer: this.responseTrailer };
  }
}

async function* normalized(
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

type Call = ReturnType<Interceptor>;
type MessageInit = Record<string, unknown>;
