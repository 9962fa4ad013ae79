import { longestTotal } from '../../domain/delivery/retry.ts';
import { postponeDeliveries, resumeDeliveries } from '../../store/deliveries/delivery-postponement.ts';
import type { HealthChange } from '../../store/deliveries/delivery-results.ts';
import type { DeliveryOptions } from '../options.ts';
import { createWorkerLoop } from '../worker/worker-loop.ts';

/**
 * Makes what lets the deliveries of a failing webhook wait together: those that are due before its receiver is
 * tried again are postponed, and made due when it answers. When a circuit breaker opens and closes is decided
 * where results are stored, in the database, so that all processes and the deliveries stored meanwhile follow.
 *
 * `onDue` is called when deliveries have become due.
 */
export function createCircuitBreaker(options: CircuitBreakerOptions, onDue: () => void): CircuitBreaker {
  const { database, settings, metrics } = options;
  const totalSeconds = longestTotal(settings.schedule);
  /** The last change of each webhook. */
  const waiting = new Map<string, BreakerChange>();
  const loop = createWorkerLoop(
    'circuit breaker',
    async () => {
      const [change] = waiting.values();
      if (change === undefined) return false;
      const { id: webhookId } = change;
      if (change.change === 'closed') {
        await resumeDeliveries(database, webhookId);
        onDue();
      } else {
        const { tenant, openUntil } = change;
        await postponeDeliveries(database, { webhookId, tenant, openUntil, totalSeconds });
      }
      if (waiting.get(webhookId) === change) waiting.delete(webhookId);
      return waiting.size > 0;
    },
    options,
  );
  return {
    onChange(change) {
      metrics?.onBreaker(change.change);
      waiting.set(change.id, change);
      loop.wake();
    },
    stop: () => loop.stop(),
  };
}

export type CircuitBreaker = {
  /** Sees to a webhook's deliveries after its circuit breaker has opened or closed. */
  onChange(change: BreakerChange): void;
  /** Waits for the group of deliveries under way. */
  stop(): Promise<void>;
};

type BreakerChange = Exclude<HealthChange, { change: 'failing' }>;

export type CircuitBreakerOptions = Pick<DeliveryOptions, 'database' | 'settings' | 'log' | 'metrics'>;
