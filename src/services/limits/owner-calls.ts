import type { HandlerContext } from '@connectrpc/connect';
import { Reason } from '../../../gen/forms/v1/errors_pb.js';
import { networkOf } from '../../domain/addresses/client-network.ts';
import { clientAddressOf, ownerOf } from '../../rpc/context.ts';
import { failed } from '../../rpc/errors.ts';
import { OpenCounts } from './open-counts.ts';

/**
 * Bounds how many calls of a kind go on at once in this process: those of an owner, those of a client's network, since
 * anybody can own forms by any number of addresses, and all.
 */
export function limitCallsAtOnce({ perOwner, perClient, total }: CallLimits): EnterCall {
  const open = new OpenCounts();

  return (call) => {
    const limits = [
      { key: `owner ${ownerOf(call).address}`, most: perOwner },
      { key: `client ${networkOf(clientAddressOf(call))}`, most: perClient },
      { key: 'all', most: total },
    ];
    if (limits.some(({ key, most }) => open.of(key) >= most)) {
      throw failed(Reason.RATE_LIMITED, 'Too many of these calls at once: try again soon', { retryAfter: 2 });
    }
    for (const { key } of limits) open.add(key, 1);
    return {
      [Symbol.dispose]() {
        for (const { key } of limits) open.add(key, -1);
      },
    };
  };
}

/** Counts an owner's call until what it returns is disposed of. Throws RATE_LIMITED if there are too many. */
export type EnterCall = (call: Pick<HandlerContext, 'values'>) => Disposable;

export type CallLimits = { perOwner: number; perClient: number; total: number };
