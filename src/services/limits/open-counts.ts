/** Counts what is open now, by key. A key of which nothing is open takes no room. */
export class OpenCounts {
  readonly #counts = new Map<string, number>();

  /** How many are open under a key. */
  of(key: string): number {
    return this.#counts.get(key) ?? 0;
  }

  add(key: string, change: 1 | -1): void {
    const count = this.of(key) + change;
    if (count === 0) this.#counts.delete(key);
    else this.#counts.set(key, count);
  }
}
