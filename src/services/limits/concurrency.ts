import { Reason } from '../../../gen/forms/v1/errors_pb.js';
import type { Caller } from '../../rpc/context.ts';
import { failed } from '../../rpc/errors.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import { OpenCounts } from './open-counts.ts';

/**
 * Bounds how many calls of a kind go on at once in this process: those of a key, of a project, and all. `what` is
 * the kind in words, such as `streams`.
 */
export function limitConcurrency(
  what: 'streams' | 'waits',
  { perKey, perProject = Number.POSITIVE_INFINITY, total }: ConcurrencyLimits,
  metrics?: Pick<Metrics, 'onLimit'>,
): Concurrency {
  const open = new OpenCounts();

  function limitsOf({ projectId, keyId = '' }: Caller) {
    return [
      {
        key: `${projectId} ${keyId}`,
        most: perKey,
        who: keyId === '' ? 'Callers without a key have' : 'This key has',
      },
      { key: projectId, most: perProject, who: 'This project has' },
      { key: '', most: total, who: 'This service has' },
    ];
  }

  function add(caller: Caller, change: 1 | -1): void {
    for (const { key } of limitsOf(caller)) open.add(key, change);
  }

  return {
    open: () => open.of(''),
    enter(caller) {
      for (const { key, most, who } of limitsOf(caller)) {
        if (open.of(key) < most) continue;
        metrics?.onLimit(what);
        throw failed(Reason.RATE_LIMITED, `${who} ${most} ${what} open already`, {
          retryAfter: RETRY_AFTER_SECONDS,
        });
      }
      add(caller, 1);
      return new Entered(caller, add);
    },
  };
}

/** A call that counts. Thousands are kept, so it holds little: the counts are found anew at its end. */
class Entered implements Disposable {
  readonly #caller: Caller;
  readonly #add: (caller: Caller, change: -1) => void;

  constructor(caller: Caller, add: (caller: Caller, change: -1) => void) {
    this.#caller = caller;
    this.#add = add;
  }

  [Symbol.dispose](): void {
    this.#add(this.#caller, -1);
  }
}

const RETRY_AFTER_SECONDS = 10;

export type Concurrency = {
  /** How many calls go on. */
  open(): number;
  /** Counts a call until it is disposed of. Throws RATE_LIMITED if there are too many. */
  enter(caller: Caller): Disposable;
};

export type ConcurrencyLimits = { perKey: number; perProject?: number; total: number };
