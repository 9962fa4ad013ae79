import type { HandlerContext } from '@connectrpc/connect';
import { Reason } from '../../../gen/forms/v1/errors_pb.js';
import { bearerOf, clientAddressOf } from '../../rpc/context.ts';
import { failed } from '../../rpc/errors.ts';
import type { ServiceContext } from '../context.ts';

/** Throws INVALID_KEY if the key of a call that goes on for long was revoked or has expired meanwhile. */
export async function requireValidKey({ keys }: ServiceContext, call: HandlerContext): Promise<void> {
  const key = bearerOf(call.requestHeader.get('authorization'));
  // Where keys are not required.
  if (key === undefined) return;
  if ((await keys.find(key, clientAddressOf(call))) === undefined) {
    throw failed(Reason.INVALID_KEY, 'The API key is no longer valid');
  }
}
