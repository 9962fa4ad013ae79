import { Code, ConnectError, type ConnectRouter } from '@connectrpc/connect';
import type { UniversalHandlerFn, UniversalServerResponse } from '@connectrpc/connect/protocol';
import { errorFromJsonBytes, errorToJsonBytes } from '@connectrpc/connect/protocol-connect';
import { unreadable, withFailure } from '../errors.ts';
import { readAll, WholeBody } from './whole-body.ts';

/**
 * Makes the router answer bytes that are no message of the RPC with `INVALID_ARGUMENT`, as it answers what is no
 * JSON, and gives each failure that Connect finds by itself a detail.
 *
 * Connect calls such bytes an internal error, with status 500, which monitoring counts as a fault of the service.
 */
export function correctRefusals({ handlers }: ConnectRouter): void {
  for (const [index, handler] of handlers.entries()) {
    const answer: UniversalHandlerFn = async (request) => {
      const response = await handler(request);
      return response.status < 400 ? response : corrected(response);
    };
    handlers[index] = Object.assign(answer, handler);
  }
}

async function corrected(response: UniversalServerResponse): Promise<UniversalServerResponse> {
  const { status, body } = response;
  if (!body) return response;
  const header = new Headers(response.header);
  if (header.has('content-encoding')) return response;
  const said = Symbol.asyncIterator in body ? await readAll(body) : body;
  const error = errorFromJsonBytes(said, undefined, new ConnectError('internal error', Code.Internal));
  if (error.details.length > 0) return { ...response, body: new WholeBody(() => said) };
  const isUnreadable = error.code === Code.Internal && error.rawMessage.startsWith('parse binary: ');
  const refusal = errorToJsonBytes(isUnreadable ? unreadable() : withFailure(error), undefined);
  header.set('content-length', String(refusal.byteLength));
  return { ...response, status: isUnreadable ? 400 : status, header, body: new WholeBody(() => refusal) };
}
