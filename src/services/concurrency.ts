import { Reason } from '../../gen/forms/v1/errors_pb.js';
import type { Caller } from '../rpc/context.ts';
import { failed } from '../rpc/errors.ts';
import type { Metrics } from '../telemetry/metrics.ts';

/**
 * Bounds how many calls of a kind go on at once in this process: those of a key, of a project, and all. `what` is
 * the kind in words, such as `streams`.
 */
export function limitConcurrency(
  what: 'streams' | 'waits',
  { perKey, perProject = Number.POSITIVE_INFINITY, total }: ConcurrencyLimits,
  metrics?: Pick<Metrics, 'onLimit'>,
): Concurrency {
  const open = new Map<string, number>();
  return {
    open: () => open.get('') ?? 0,
    enter({ projectId, keyId = '' }) {
      const counts = [
        {
          of: `${projectId} ${keyId}`,
          most: perKey,
          who: keyId === '' ? 'Callers without a key have' : 'This key has',
        },
        { of: projectId, most: perProject, who: 'This project has' },
        { of: '', most: total, who: 'This service has' },
      ];
      for (const { of, most, who } of counts) {
        if ((open.get(of) ?? 0) < most) continue;
        metrics?.onLimit(what);
        throw failed(Reason.RATE_LIMITED, `${who} ${most} ${what} open already`, {
          retryAfter: RETRY_AFTER_SECONDS,
        });
      }
      const add = (change: 1 | -1) => {
        for (const { of } of counts) {
          const count = (open.get(of) ?? 0) + change;
          if (count === 0) open.delete(of);
          else open.set(of, count);
        }
      };
      add(1);
      return { [Symbol.dispose]: () => add(-1) };
    },
  };
}

const RETRY_AFTER_SECONDS = 10;

export type Concurrency = {
  /** How many calls go on. */
  open(): number;
  /** Counts a call until it is disposed of. Throws RATE_LIMITED if there are too many. */
  enter(caller: Caller): Disposable;
};

export type ConcurrencyLimits = { perKey: number; perProject?: number; total: number };
