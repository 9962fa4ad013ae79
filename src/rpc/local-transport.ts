import { create, type DescMethod } from '@bufbuild/protobuf';
import {
  Code,
  ConnectError,
  type ContextValues,
  type StreamResponse,
  type Transport,
  type UnaryResponse,
} from '@connectrpc/connect';
import { CallValues } from './context.ts';
import { type MethodCall, type MethodCalls, normalized } from './method-calls.ts';

/**
 * A transport to services in this process: it runs the interceptors and the method on the message
 * itself, without serializing, for a few microseconds a call.
 *
 * Its callers are the REST gateway and the hosted pages, so what their context values say of the client is believed.
 * Messages are not copied: neither side may change one after handing it over.
 */
export function createLocalTransport(calls: MethodCalls): Transport {
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
