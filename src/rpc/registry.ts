import { create, type DescMethod, type DescService } from '@bufbuild/protobuf';
import {
  Code,
  ConnectError,
  type ContextValues,
  createServiceImplSpec,
  type Interceptor,
  type MethodImplSpec,
  type ServiceImpl,
  type StreamResponse,
  type Transport,
  type UnaryResponse,
} from '@connectrpc/connect';
import { currentTraceparent, runWith } from '../telemetry/trace-context.ts';
import { isFault, type Tracing } from '../telemetry/tracing.ts';
import { type Caller, CallValues, callerOf, factsOf } from './context.ts';
import {
  type AuthenticationOptions,
  type Authenticator,
  createGate,
  createKeylessOriginCheck,
  type Gate,
  type GateOptions,
  identify,
  throughGate,
  type Within,
} from './gate.ts';
import { type CallLog, createCallLog, type LogOptions } from './logging.ts';
import { createMethodCalls, type MethodCall, type MethodCalls, normalized } from './method-calls.ts';
import { setRateHeaders } from './rate-limits.ts';

/**
 * Puts services behind the one chain of interceptors that every call passes: logging, authentication
 * with authorization, rate limits.
 */
export function createRpc({ services, ownUrls, tracing, within, ...options }: RpcOptions): Rpc {
  const authentication = { ...options, checkKeylessOrigin: createKeylessOriginCheck(ownUrls) };
  const callLog = createCallLog(options);
  const gate = createGate({ ...options, authentication });
  const interceptors: Interceptor[] = [
    ...(tracing === undefined ? [] : [traceCalls(tracing)]),
    callLog.interceptor,
    throughGate(gate, within),
  ];
  const specs = services.map(({ descriptor, implementation }) =>
    createServiceImplSpec(descriptor, implementation),
  );
  const calls = createMethodCalls(specs, interceptors);
  const methods = specs.flatMap((spec) => Object.values(spec.methods));
  return {
    served: { methods, calls, interceptors, gate, callLog },
    transport: () => createLocalTransport(calls),
    async admit(method, header, values, formId) {
      const call = { method, header, contextValues: values, signal: new AbortController().signal };
      await gate(method, header, values, formId).catch((error: unknown) => {
        throw callLog.fail(call, error);
      });
      const rates = new Headers();
      setRateHeaders(rates, factsOf({ values }));
      return rates;
    },
    async identify(header, values, find) {
      const access = { key: 'required', openWithoutKeys: true } as const;
      const { keys: known } = options;
      const keys = find === undefined ? known : withFind(known, find);
      await identify(header, factsOf({ values }), access, { ...authentication, keys });
      return callerOf({ values });
    },
  };
}

function withFind(keys: Authenticator, find: Authenticator['find']): Authenticator {
  return { find, ofStreamToken: (token) => keys.ofStreamToken(token), withoutKey: () => keys.withoutKey() };
}

/** Records unary calls within the traces of their requests. Streams belong to the spans of those. */
function traceCalls(tracing: Tracing): Interceptor {
  return (next) => async (req) => {
    const traceparent = currentTraceparent();
    if (req.stream || traceparent === undefined) return next(req);
    const { name, parent } = req.method;
    const attributes = { 'rpc.system': 'connect_rpc', 'rpc.service': parent.typeName, 'rpc.method': name };
    const span = tracing.startSpan(`${parent.typeName}/${name}`, { parent: traceparent, attributes });
    try {
      return await runWith(span.traceparent, () => next(req));
    } catch (error) {
      const code = Code[ConnectError.from(error).code];
      span.setAttributes({ 'forms.code': code });
      if (isFault(code)) span.fail(code);
      throw error;
    } finally {
      span.end();
    }
  };
}

export type Rpc = {
  served: Served;
  /** A transport for callers in this process: the gateway and the hosted pages. */
  transport(): Transport;
  /**
   * Asks whether a caller in this process may make a call, without making it. It counts as one where rates are
   * limited.
   */
  admit: (...call: Parameters<Gate>) => Promise<Headers>;
  /**
   * Tells whose key a request has that has not said yet what to call. Throws as a call does without a valid key, unless
   * none is required. `find` finds callers that have more than keys to show; the calls of this request then pass as
   * theirs.
   */
  identify: (header: Headers, values: ContextValues, find?: Authenticator['find']) => Promise<Caller>;
};

/** All methods, for the server that takes RPCs from the network. */
export type Served = {
  methods: readonly MethodImplSpec[];
  /** The calls of all of them, which pass the interceptors. */
  calls: MethodCalls;
  interceptors: readonly Interceptor[];
  /** What a call passes before its message is received. */
  gate: Gate;
  callLog: Pick<CallLog, 'fail'>;
};

/** A service and what answers its calls. */
type Service = { descriptor: DescService; implementation: ServiceImpl<DescService> };

type RpcOptions = Omit<AuthenticationOptions, 'checkKeylessOrigin'> &
  Omit<GateOptions, 'authentication'> &
  LogOptions & {
    services: readonly Service[];
    /** The addresses of the service as its users see them. */
    ownUrls: readonly string[];
    tracing?: Tracing | undefined;
    within: Within;
  };

/**
 * A transport to services in this process: it runs the interceptors and the method on the message
 * itself, without serializing, for a few microseconds a call.
 *
 * Its callers are the REST gateway and the hosted pages, so what their context values say of the client is believed.
 * Messages are not copied: neither side may change one after handing it over.
 */
function createLocalTransport(calls: MethodCalls): Transport {
  function callOf(method: DescMethod): MethodCall {
    const call = calls.get(method);
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

function requestOf(
  method: DescMethod,
  signal: AbortSignal | undefined,
  timeoutMs: number | undefined,
  init: ConstructorParameters<typeof Headers>[0],
  contextValues: ContextValues = new CallValues(),
) {
  return {
    service: method.parent,
    requestMethod: 'POST',
    url: urlOf(method),
    signal: withDeadline(signal, timeoutMs),
    header: init instanceof Headers ? init : new Headers(init),
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

function withDeadline(signal: AbortSignal | undefined, timeoutMs: number | undefined): AbortSignal {
  const signals = signal === undefined ? [] : [signal];
  if (timeoutMs !== undefined) signals.push(AbortSignal.timeout(timeoutMs));
  const [only] = signals;
  if (only === undefined) return new AbortController().signal;
  return signals.length === 1 ? only : AbortSignal.any(signals);
}
