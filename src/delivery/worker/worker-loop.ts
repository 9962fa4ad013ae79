import type { Log } from '../../telemetry/log.ts';

/**
 * Makes what runs a piece of work again and again: at once when woken, one run at a time, as long as
 * the work says that there is more. Woken again and again, it rests for some milliseconds between runs,
 * in which work gathers. A failing run is logged and repeated a second later.
 */
export function createPump(name: string, work: () => Promise<boolean>, log: Log): Pump {
  let running: Promise<void> | undefined;
  let woken = false;
  let stopped = false;
  let restsUntil = 0;
  let rest: NodeJS.Timeout | undefined;

  const run = async () => {
    restsUntil = 0;
    woken = false;
    try {
      while (!stopped && (await work()));
      restsUntil = performance.now() + REST_MS;
    } catch (error) {
      log.error({ err: error, work: name }, 'Delivery work failed; it is tried again.');
      woken = true;
      restsUntil = performance.now() + PAUSE_MS;
    }
  };

  const begin = () => {
    rest = undefined;
    if (running !== undefined || stopped || !woken) return;
    running = run().finally(() => {
      running = undefined;
      if (woken && !stopped) later();
    });
  };

  const later = () => {
    rest ??= setTimeout(begin, Math.max(0, restsUntil - performance.now()));
  };

  return {
    wake() {
      woken = true;
      if (running !== undefined || stopped) return;
      if (performance.now() < restsUntil) later();
      else begin();
    },
    async stop() {
      stopped = true;
      clearTimeout(rest);
      await running;
    },
  };
}

/** After a failure, such as a database that is away. */
const PAUSE_MS = 1_000;

/** Nobody waits for so little, and a busy form's commits come in crowds. */
const REST_MS = 5;

export type Pump = {
  wake: () => void;
  /** Waits for the run under way; none begins after it. */
  stop(): Promise<void>;
};
