import type { DescMessage, DescMethodUnary, MessageInitShape, MessageShape } from '@bufbuild/protobuf';
import type { CallOptions, Transport } from '@connectrpc/connect';
import type { Request, Response } from 'express';

/**
 * Calls RPCs on behalf of an HTTP request: they learn who calls and from where, and what they say in
 * headers goes onto the reply. Throws the `ConnectError` of a failed call.
 */
export function callsFor(transport: Transport, request: Request, response: Response): Call {
  let options: HttpCallOptions | undefined;
  return async (method, input) => {
    options ??= callOptions(request, response);
    const reply = await transport.unary(method, undefined, undefined, options.headers, input);
    options.onHeader(reply.header);
    return reply.message;
  };
}

/**
 * What an RPC learns of the HTTP request beside its message: who calls, from where, and under
 * which request id. Its response headers that callers may see go onto the reply.
 */
export function callOptions(request: Request, response: Response): HttpCallOptions {
  const headers: Record<string, string> = {};
  for (const name of passedOn) {
    const value = request.headers[name];
    if (typeof value === 'string') headers[name] = value;
  }
  const id = request.headers['x-request-id'];
  if (typeof id === 'string' && requestIdPattern.test(id)) headers['x-request-id'] = id;
  // The one address that Express found behind the trusted proxies, never the header as it came.
  if (request.ip !== undefined) headers['x-forwarded-for'] = request.ip;
  return { headers, onHeader: (received) => passBack(received, response) };
}

const passedOn = ['authorization', 'origin', 'referer', 'accept-language'] as const;

/** Request ids go into the log, so only harmless characters are accepted. */
const requestIdPattern = /^[\w-]{1,64}$/;

/** The response headers of an RPC that go on to the HTTP reply. */
export const passedBack = ['ratelimit', 'ratelimit-policy', 'retry-after', 'www-authenticate'] as const;

function passBack(received: Headers, response: Response): void {
  for (const name of passedBack) {
    const value = received.get(name);
    if (value !== null) response.setHeader(name, value);
  }
}

/** Calls one RPC with one message. */
export type Call = <I extends DescMessage, O extends DescMessage>(
  method: DescMethodUnary<I, O>,
  input: MessageInitShape<I>,
) => Promise<MessageShape<O>>;

type HttpCallOptions = Required<Pick<CallOptions, 'onHeader'>> & { headers: Record<string, string> };
