import type { DescMethod } from '@bufbuild/protobuf';
import { Code, ConnectError, createContextKey, type HandlerContext } from '@connectrpc/connect';
import { limitsOf } from '../../domain/limits/message-limits.ts';
import { type AuthenticationOptions, identify } from '../authentication.ts';
import { accessOf } from '../authorization.ts';
import { unreadable } from '../errors.ts';
import type { CallLog } from '../logging.ts';
import type { RateLimits } from '../rate-limits.ts';
import { TEXT_OVERHEAD, textKey } from './grpc-web-text.ts';
import { ENVELOPE_HEAD } from './limits.ts';
import { checkMessage, tooLarge } from './message-check.ts';

/**
 * What a call from the network has to pass before its message is received: the size that it announces, who
 * calls and with which scope, and the rates that don't depend on the message. Each of them is checked only
 * once a call.
 */
export function createRequestGate(options: RequestGateOptions): RequestGate {
  const { authentication, rateLimits, callLog } = options;
  return async (context) => {
    const { method, requestMethod, requestHeader: header, values, signal, url } = context;
    endWithoutTrace(context);
    if (values.get(passedKey)) return;
    values.set(passedKey, true);
    try {
      const announced = Number(header.get('content-length')) / (values.get(textKey) ? TEXT_OVERHEAD : 1);
      refuseTooLarge(announced, limitsOf(method).readMaxBytes);
      await identify(header, values, accessOf(method), authentication);
      await rateLimits?.beforeMessage(method, values);
      if (requestMethod === 'GET') checkUrl(method, url);
    } catch (error) {
      throw callLog.fail({ method, header, contextValues: values, signal }, error);
    }
  };
}

/**
 * Connect aborts the signal of every call when it is over. Without a reason, one with a stack trace is made, which is
 * a twentieth of what a call costs.
 */
function endWithoutTrace(context: Ended): void {
  const { abort } = context;
  if (abort !== undefined) context.abort = (reason = over) => abort(reason);
}

const over = new ConnectError('The call is over', Code.Canceled);

function refuseTooLarge(announced: number, limit: number): void {
  if (announced > limit + ENVELOPE_HEAD) throw tooLarge(limit);
}

/** Checks the message that a URL holds; what it holds compressed is left to `checkedGzip`. */
function checkUrl(method: DescMethod, url: string): void {
  const { searchParams } = new URL(url);
  const text = searchParams.get('message') ?? '';
  const isBase64 = searchParams.get('base64') === '1';
  if (isBase64 && !base64.test(text)) throw unreadable();
  if ((searchParams.get('compression') ?? 'identity') !== 'identity') return;
  const message = Buffer.from(text, isBase64 ? 'base64' : 'utf8');
  checkMessage(
    method,
    message,
    searchParams.get('encoding') === 'json' ? 'json' : 'binary',
    limitsOf(method),
  );
}

/** Of either alphabet, with its padding or without. */
const base64 = /^([\w+/-]{4})*([\w+/-]{2,3}={0,2})?$/;

const passedKey = createContextKey(false, { description: 'passed the gate' });

/** Connect's own context, as it is; its type has no `abort`. */
type Ended = HandlerContext & { abort?: (reason?: unknown) => void };

/** Connect's `requestGate`. */
type RequestGate = (context: HandlerContext) => Promise<void>;

type RequestGateOptions = {
  authentication: AuthenticationOptions;
  /** Absent where rates are not limited. */
  rateLimits: RateLimits | undefined;
  callLog: CallLog;
};
