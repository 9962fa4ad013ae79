import { create, type DescMethodStreaming, type DescMethodUnary } from '@bufbuild/protobuf';
import type { CallOptions, Interceptor } from '@connectrpc/connect';
import { requestOf } from './local-transport.ts';

/**
 * Asks whether a call may be made without making it: runs the interceptors of every call on it, and throws what
 * refuses its caller. It counts as a call where rates are limited.
 */
export function createAdmission(interceptors: Interceptor[]): Admit {
  const call = interceptors.reduceRight<Call>((next, intercept) => intercept(next), admitted);
  return async (method, input, options) => {
    const request = requestOf(method, undefined, undefined, options.headers, options.contextValues);
    const { header } = isStreaming(method)
      ? await call({ ...request, stream: true, method, message: nothing() })
      : await call({ ...request, stream: false, method, message: create(method.input, input) });
    options.onHeader?.(header);
  };
}

/** Answers in place of the service. */
const admitted: Call = async (req) => {
  const common = { service: req.service, header: new Headers(), trailer: new Headers() };
  return req.stream
    ? { ...common, stream: true, method: req.method, message: nothing() }
    : { ...common, stream: false, method: req.method, message: create(req.method.output) };
};

async function* nothing(): AsyncGenerator<never> {}

function isStreaming(method: DescMethodUnary | DescMethodStreaming): method is DescMethodStreaming {
  return method.methodKind !== 'unary';
}

/**
 * `input` holds what access and rates depend on, such as `formId`; what the RPC's message has no field for is
 * ignored.
 */
export type Admit = (
  method: DescMethodUnary | DescMethodStreaming,
  input: Record<string, unknown>,
  options: CallOptions,
) => Promise<void>;

type Call = ReturnType<Interceptor>;
