import type { HandlerContext } from '@connectrpc/connect';
import { requestIdFrom } from '../../domain/request-id.ts';
import type { ServiceContext } from '../context.ts';

/** Writes into the log what an owner has done, to which form or submission, and with whose address. */
export function logAction(
  { log }: Pick<ServiceContext, 'log'>,
  call: Pick<HandlerContext, 'requestHeader'>,
  { address }: { address: string },
  action: string,
  about: { formId?: string; submissionId?: string; uploadId?: string; other?: string } = {},
): void {
  const requestId = requestIdFrom(call.requestHeader.get('x-request-id'));
  log.info({ owner: address, action, ...about, requestId }, 'an owner acted');
}
