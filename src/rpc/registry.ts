import type { DescMethod, DescService } from '@bufbuild/protobuf';
import {
  Code,
  ConnectError,
  type ConnectRouter,
  createServiceImplSpec,
  type Interceptor,
  type ServiceImpl,
  type Transport,
} from '@connectrpc/connect';
import { limitsOf } from '../domain/limits/message-limits.ts';
import type { Log } from '../telemetry/log.ts';
import { currentTraceparent, runWith } from '../telemetry/trace-context.ts';
import { isFault, type Tracing } from '../telemetry/tracing.ts';
import { type Admit, createAdmission } from './admission.ts';
import {
  type Authenticator,
  authenticate,
  createIdentification,
  type Identify,
  type OwnerAuthenticator,
} from './authentication.ts';
import { createLocalTransport } from './local-transport.ts';
import { createCallLog } from './logging.ts';
import { createMethodCalls } from './method-calls.ts';
import { callLimits, maxTimeoutMs, type ServingOptions } from './network/limits.ts';
import { checkedGzip, refuseUnreadableMessages } from './network/message-check.ts';
import { createRequestGate } from './network/request-gate.ts';
import { answerUnary } from './network/unary.ts';
import { createOwnCallersCheck, type OwnCallersOptions } from './own-callers.ts';
import { type CountInDatabase, createRateLimits } from './rate-limits.ts';

/**
 * Puts services behind the one chain of interceptors that every call passes: logging, authentication
 * with authorization, rate limits.
 */
export function createRpc(options: RpcOptions): Rpc {
  const { services, keys, owners, requireApiKey, rateLimits, describeTemporaryFault, guards, tracing } =
    options;
  const { now, log } = options;
  const authentication = { keys, owners, requireApiKey, checkOwnCaller: createOwnCallersCheck(options) };
  const callLog = createCallLog({ log, now, describeTemporaryFault });
  const rates = rateLimits ? createRateLimits({ ...rateLimits, now }) : undefined;
  const interceptors: Interceptor[] = [
    ...(tracing === undefined ? [] : [traceCalls(tracing)]),
    callLog.interceptor,
    refuseUnreadableMessages,
    authenticate(authentication),
    ...(rates === undefined ? [] : [rates.interceptor]),
    ...guards,
  ];
  const requestGate = createRequestGate({ authentication, rateLimits: rates, callLog });
  /** How a method is served on the network. */
  const optionsOf = (method: DescMethod): ServingOptions => ({
    ...callLimits,
    maxTimeoutMs: maxTimeoutMs(method),
    readMaxBytes: limitsOf(method).readMaxBytes,
    acceptCompression: [checkedGzip(method)],
    requestGate,
    interceptors,
  });
  const specs = services.map(({ descriptor, implementation }) =>
    createServiceImplSpec(descriptor, implementation),
  );
  const calls = createMethodCalls(specs, interceptors);
  return {
    routes(router) {
      for (const { method, impl } of specs.flatMap(({ methods }) => Object.values(methods))) {
        router.rpc(method, impl, optionsOf(method));
      }
      answerUnary(router, calls, optionsOf);
    },
    transport: () => createLocalTransport(calls),
    admit: createAdmission(interceptors),
    identify: createIdentification(authentication),
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
  /** Registers all services with the server that takes RPCs from the network, interceptors included. */
  routes(router: ConnectRouter): void;
  /** A transport for callers in this process: the gateway and the hosted pages. */
  transport(): Transport;
  /** Asks whether a caller in this process may make a call, without making it. */
  admit: Admit;
  /** Tells whose key a caller in this process has. */
  identify: Identify;
};

/** A service and what answers its calls. */
type Service = { descriptor: DescService; implementation: ServiceImpl<DescService> };

export type RpcOptions = OwnCallersOptions & {
  services: readonly Service[];
  keys: Authenticator;
  owners: OwnerAuthenticator;
  /** False: the RPCs marked `openWithoutKeys` answer without a key, in the default project. */
  requireApiKey: boolean;
  /** False: no rate is limited. `perKey` is the most calls a minute with one key; undefined: any number. */
  rateLimits: false | { perKey: number | undefined; countInDatabase: CountInDatabase };
  /** Why a call failed, in a sentence, if the cause is temporary; undefined for other errors. */
  describeTemporaryFault: (error: unknown) => string | undefined;
  /** What may refuse a call, innermost. */
  guards: readonly Interceptor[];
  tracing?: Tracing | undefined;
  /** Milliseconds since 1970. */
  now: () => number;
  log: Log;
};
