import type { Log } from './options.ts';

/**
 * Makes what runs a piece of work again and again: at once when woken, one run at a time, as long as
 * the work says that there is more. A failing run is logged and repeated a second later.
 */
export function createPump(name: string, work: () => Promise<boolean>, log: Log): Pump {
  let running: Promise<void> | undefined;
  let woken = false;
  let stopped = false;
  let pausedUntil = 0;

  const run = async () => {
    while (woken && !stopped) {
      woken = false;
      try {
        if (await work()) woken = true;
      } catch (error) {
        log.error({ err: error, work: name }, 'Delivery work failed; it is tried again.');
        pausedUntil = performance.now() + PAUSE_MS;
        return;
      }
    }
  };

  return {
    wake() {
      woken = true;
      if (running !== undefined || stopped || performance.now() < pausedUntil) return;
      running = run().finally(() => {
        running = undefined;
      });
    },
    async stop() {
      stopped = true;
      await running;
    },
  };
}

/** The loop's clock wakes it again after that. */
const PAUSE_MS = 900;

export type Pump = {
  wake(): void;
  /** Waits for the run under way; none begins after it. */
  stop(): Promise<void>;
};
