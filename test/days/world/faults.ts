import type { Fault, FaultObserved } from './types.ts';

/** What is wrong with the world now. */
export class Faults {
  readonly #now: () => number;
  readonly #onFault: (fault: FaultObserved) => void;
  #active: { fault: Fault; about: string; until: number }[] = [];

  constructor(now: () => number, onFault: (fault: FaultObserved) => void) {
    this.#now = now;
    this.#onFault = onFault;
  }

  begin(fault: Fault, about: string, ms: number): void {
    this.#onFault({ kind: 'fault', at: this.#now(), fault, about, ms });
    this.#active.push({ fault, about, until: this.#now() + ms });
  }

  end(): void {
    this.#active = [];
  }

  /** The fault of these that holds for something now, the last that began. */
  of<F extends Fault>(faults: readonly F[], ...about: string[]): F | undefined {
    this.#active = this.#active.filter(({ until }) => until > this.#now());
    const found = this.#active.findLast(
      (each) => (faults as readonly Fault[]).includes(each.fault) && ['*', ...about].includes(each.about),
    );
    return found?.fault as F | undefined;
  }

  /** By how much clocks are off, in milliseconds. */
  clockOffset(): number {
    const off = this.#active.findLast(({ fault, until }) => fault === 'clock-off' && until > this.#now());
    return off === undefined ? 0 : Number(off.about);
  }
}
