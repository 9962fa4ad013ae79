import type { DescMethod } from '@bufbuild/protobuf';
import { ConnectError, type ContextValues, type Interceptor } from '@connectrpc/connect';
import { policyOf } from '../domain/methods.ts';
import { type AuthenticationOptions, identify } from './authentication.ts';
import { type CallFacts, factsOf } from './context.ts';
import { type RateLimits, setRateHeaders } from './rate-limits.ts';

/**
 * The one question whether a call may be made: who calls and with which scope, how often, and what else may refuse it.
 * The network asks it before a message is received, the gateway before a large body is, and every call once more when
 * its message is known. What it finds out stays with the request, so that it finds it out once.
 */
export function createGate({ authentication, rateLimits, refuse, onIdentified }: GateOptions): Gate {
  return async (method, header, values, formId) => {
    const facts = factsOf({ values });
    const policy = policyOf(method);
    await identify(header, facts, policy, authentication);
    onIdentified?.(facts);
    await rateLimits?.(policy.limits, facts, formId);
    refuse(method);
  };
}

/** Asks the gate for each call, and tells in its answer what rates are left. */
export function throughGate(gate: Gate): Interceptor {
  return (next) => async (req) => {
    await gate(req.method, req.header, req.contextValues, req.stream ? undefined : formIdIn(req.message));
    const facts = factsOf({ values: req.contextValues });
    const response = await next(req).catch((error: unknown) => {
      if (error instanceof ConnectError) setRateHeaders(error.metadata, facts);
      throw error;
    });
    setRateHeaders(response.header, facts);
    return response;
  };
}

/** The form that a message names; undefined if it names none. */
function formIdIn(message: object): string | undefined {
  return 'formId' in message && typeof message.formId === 'string' && message.formId !== ''
    ? message.formId
    : undefined;
}

/** Throws what refuses a call. `formId` is undefined as long as the message is not known, or if it names no form. */
export type Gate = (
  method: DescMethod,
  header: Headers,
  values: ContextValues,
  formId?: string,
) => Promise<void>;

type GateOptions = {
  authentication: AuthenticationOptions;
  /** Absent where rates are not limited. */
  rateLimits: RateLimits | undefined;
  /** Throws what keeps everybody from calling a method just now. */
  refuse: (method: DescMethod) => void;
  /** Called when it is known who calls. */
  onIdentified?: ((facts: Pick<CallFacts, 'caller' | 'owner'>) => void) | undefined;
};
