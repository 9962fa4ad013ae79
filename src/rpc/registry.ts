import type { DescService } from '@bufbuild/protobuf';
import {
  Code,
  ConnectError,
  type ContextValues,
  createServiceImplSpec,
  type Interceptor,
  type MethodImplSpec,
  type ServiceImpl,
  type Transport,
} from '@connectrpc/connect';
import { currentTraceparent, runWith } from '../telemetry/trace-context.ts';
import { isFault, type Tracing } from '../telemetry/tracing.ts';
import { type Caller, callerOf, factsOf } from './context.ts';
import {
  type AuthenticationOptions,
  type Authenticator,
  createGate,
  type Gate,
  type GateOptions,
  identify,
  throughGate,
} from './gate.ts';
import { createKeylessOriginCheck } from './keyless-origin-check.ts';
import { createLocalTransport } from './local-transport.ts';
import { type CallLog, createCallLog, type LogOptions } from './logging.ts';
import { createMethodCalls, type MethodCalls } from './method-calls.ts';
import { setRateHeaders } from './rate-limits.ts';

/**
 * Puts services behind the one chain of interceptors that every call passes: logging, authentication
 * with authorization, rate limits.
 */
export function createRpc({ services, ownUrls, tracing, ...options }: RpcOptions): Rpc {
  const authentication = { ...options, checkKeylessOrigin: createKeylessOriginCheck(ownUrls) };
  const callLog = createCallLog(options);
  const gate = createGate({ ...options, authentication });
  const interceptors: Interceptor[] = [
    ...(tracing === undefined ? [] : [traceCalls(tracing)]),
    callLog.interceptor,
    throughGate(gate),
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
      const keys = { ...options.keys, ...(find && { find }) };
      await identify(header, factsOf({ values }), access, { ...authentication, keys });
      return callerOf({ values });
    },
  };
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
  /** Asks whether a caller in this process may make a call, without making it. It counts as one where rates are limited. */
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

export type RpcOptions = Omit<AuthenticationOptions, 'checkKeylessOrigin'> &
  Omit<GateOptions, 'authentication'> &
  LogOptions & {
    services: readonly Service[];
    /** The addresses of the service as its users see them. */
    ownUrls: readonly string[];
    tracing?: Tracing | undefined;
  };
