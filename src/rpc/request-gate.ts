import { createContextKey, type HandlerContext } from '@connectrpc/connect';
import { Reason } from '../../gen/forms/v1/errors_pb.js';
import { limitsOf } from '../domain/message-limits.ts';
import { type AuthenticationOptions, identify } from './authentication.ts';
import { accessOf } from './authorization.ts';
import { failed } from './errors.ts';
import { WIRE_OVERHEAD } from './limits.ts';
import type { CallLog } from './logging.ts';
import type { RateLimits } from './rate-limits.ts';

/**
 * What a call from the network has to pass before its message is received: the size that it announces, who
 * calls and with which scope, and the rates that don't depend on the message. Each of them is checked only
 * once a call.
 */
export function createRequestGate(options: RequestGateOptions): RequestGate {
  const { authentication, rateLimits, callLog } = options;
  return async ({ method, requestHeader: header, values, signal }) => {
    if (values.get(passedKey)) return;
    values.set(passedKey, true);
    try {
      refuseTooLarge(Number(header.get('content-length')), limitsOf(method).readMaxBytes);
      await identify(header, values, accessOf(method), authentication);
      await rateLimits?.beforeMessage(method, values);
    } catch (error) {
      throw callLog.fail({ method, header, signal }, error);
    }
  };
}

function refuseTooLarge(announced: number, limit: number): void {
  if (announced <= limit + WIRE_OVERHEAD) return;
  throw failed(Reason.TOO_LARGE, `The message is larger than ${limit} bytes`);
}

const passedKey = createContextKey(false, { description: 'passed the gate' });

/** Connect's `requestGate`. */
type RequestGate = (context: HandlerContext) => Promise<void>;

type RequestGateOptions = {
  authentication: AuthenticationOptions;
  /** Absent where rates are not limited. */
  rateLimits: RateLimits | undefined;
  callLog: CallLog;
};
