import type { Random } from './types.ts';

/**
 * Where processes die: at places drawn evenly from those that a dry run of the seed has passed, each from a time of its
 * own on. Half of them are among the statements between a submission and its deliveries. Also notes the places that are
 * passed, which is what a dry run is for.
 */
export class CrashPlan {
  readonly passed = new Set<string>();
  readonly #now: () => number;
  #targets: { place: string; from: number }[] = [];
  #isOver = false;

  constructor(now: () => number) {
    this.#now = now;
  }

  draw(random: Random, { crashes, places, path, begin, end }: DrawOptions): void {
    const onPath = places.filter((place) => path.includes(place.replace(/^(before|after) /, '')));
    for (let count = 0; count < crashes; count++) {
      const from = begin + random.number() * (end - begin) * EARLY_SHARE;
      this.#targets.push({
        place: random.pick(random.chance(0.5) && onPath.length > 0 ? onPath : places),
        from,
      });
    }
  }

  /** Whether a process dies here and now. */
  reaches(place: string): boolean {
    this.passed.add(place);
    if (this.#isOver || this.#targets.length === 0) return false;
    const index = this.#targets.findIndex((each) => each.place === place && each.from <= this.#now());
    if (index === -1) return false;
    this.#targets.splice(index, 1);
    return true;
  }

  /** Nobody dies any more. */
  end(): void {
    this.#isOver = true;
  }
}

/** Late in the days a place may not come again. */
const EARLY_SHARE = 0.9;

type DrawOptions = {
  crashes: number;
  places: readonly string[];
  path: readonly string[];
  /** Milliseconds since 1970. */
  begin: number;
  end: number;
};
