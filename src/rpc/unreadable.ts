import { text } from 'node:stream/consumers';
import type { ConnectRouter } from '@connectrpc/connect';
import type { UniversalHandlerFn, UniversalServerResponse } from '@connectrpc/connect/protocol';
import { errorToJsonBytes } from '@connectrpc/connect/protocol-connect';
import { Reason } from '../../gen/forms/v1/errors_pb.js';
import { inPieces } from './bytes.ts';
import { failed } from './errors.ts';

/**
 * Makes the router answer bytes that are no message of the RPC with `INVALID_ARGUMENT`, as it answers
 * what is no JSON.
 *
 * Connect calls that an internal error, and status 500 wakes whoever watches over the service. gRPC
 * keeps `INTERNAL`, which is its own word for it and comes with status 200.
 */
export function refuseUnreadable({ handlers }: ConnectRouter): void {
  for (const [index, handler] of handlers.entries()) {
    const answer: UniversalHandlerFn = async (request) => corrected(await handler(request));
    handlers[index] = Object.assign(answer, handler);
  }
}

async function corrected(response: UniversalServerResponse): Promise<UniversalServerResponse> {
  const { status, body } = response;
  if (status !== 500 || !body) return response;
  const header = new Headers(response.header);
  if (header.has('content-encoding')) return response;
  const said = Symbol.asyncIterator in body ? await text(body) : new TextDecoder().decode(body);
  if (!said.startsWith('{"code":"internal","message":"parse binary: ')) {
    return { ...response, body: inPieces([new TextEncoder().encode(said)]) };
  }
  const refusal = errorToJsonBytes(failed(Reason.BAD_REQUEST, 'The message can not be read'), undefined);
  header.set('content-length', String(refusal.byteLength));
  return { ...response, status: 400, header, body: inPieces([refusal]) };
}
