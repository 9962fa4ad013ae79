/** Which events have been given to somebody, by their ids: all up to a position, and some beyond it. */
export class GivenEvents {
  /** Every event up to here has been given, and no other one can be committed. Only `moveTo` changes it. */
  position: string;
  /** What has been given beyond the position: `add` adds, `moveTo` removes. */
  readonly #beyond = new Set<string>();

  constructor(position: string) {
    this.position = position;
  }

  has(id: string): boolean {
    return id <= this.position || this.#beyond.has(id);
  }

  /** Returns whether it was not given before. */
  add(id: string): boolean {
    const isFresh = !this.has(id);
    if (isFresh) this.#beyond.add(id);
    return isFresh;
  }

  /** Every event up to this id has been given. */
  moveTo(id: string): void {
    if (id <= this.position) return;
    this.position = id;
    for (const old of this.#beyond) if (old <= id) this.#beyond.delete(old);
  }
}
