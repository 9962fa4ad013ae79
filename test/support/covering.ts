/** Whether tests are to try all combinations: `MATRIX=full`. */
export const isMatrixFull = process.env.MATRIX === 'full';

/**
 * Combinations of these values in which each pair of values of two dimensions occurs: far fewer than all, and most
 * faults need no more than two values to meet. The same values give the same combinations in the same order. It is all
 * of them if the matrix is to be full.
 */
export function covering<const T extends Record<string, readonly unknown[]>>(
  dimensions: T,
  isFull = isMatrixFull,
): Combination<T>[] {
  // The largest first: there are at least as many combinations as the two largest have pairs.
  const sorted = Object.entries(dimensions).sort(([, a], [, b]) => b.length - a.length);
  const sizes = sorted.map(([, values]) => values.length);
  const rows = isFull || sizes.length < 2 || sizes.includes(0) ? product(sizes) : pairwise(sizes);
  return rows.map(
    (row) => Object.fromEntries(sorted.map(([name, values], i) => [name, values[row[i] ?? 0]])) as never,
  );
}

/** All combinations of numbers below these. */
function product(sizes: number[]): number[][] {
  return sizes.reduce<number[][]>(
    (rows, size) => rows.flatMap((row) => Array.from({ length: size }, (_, value) => [...row, value])),
    [[]],
  );
}

/** Combinations of numbers below these in which each pair of numbers at two places occurs. */
function pairwise(sizes: number[]): number[][] {
  const missing = new Map<string, Chosen[]>();
  const places = [...sizes.keys()];
  for (const [place = 0, other = 0] of product([sizes.length, sizes.length])) {
    if (place >= other) continue;
    for (const [value = 0, otherValue = 0] of product([sizes[place] ?? 0, sizes[other] ?? 0])) {
      const pair: Chosen[] = [
        [place, value],
        [other, otherValue],
      ];
      missing.set(keyOf(pair), pair);
    }
  }
  const rows: number[][] = [];
  // What a row holds besides is taken from the pairs to come.
  for (const pair of missing.values()) {
    const row = [...pair];
    for (const place of places) if (!row.some(([taken]) => taken === place)) row.push(bestFor(place, row));
    for (const one of row) for (const other of row) missing.delete(keyOf([one, other]));
    rows.push(places.map((place) => row.find(([taken]) => taken === place)?.[1] ?? 0));
  }
  return rows;

  /** The number that makes the most missing pairs with those of the row, and of several the one used least. */
  function bestFor(place: number, row: Chosen[]): Chosen {
    const worth = (value: number) =>
      row.filter((other) => missing.has(keyOf([[place, value], other]))).length;
    const uses = (value: number) => rows.filter((made) => made[place] === value).length;
    const values = Array.from({ length: sizes[place] ?? 0 }, (_, value) => value);
    return [place, values.sort((a, b) => worth(b) - worth(a) || uses(a) - uses(b))[0] ?? 0];
  }
}

/** The same for a pair in either order. */
function keyOf(pair: Chosen[]): string {
  return [...pair].sort(([a], [b]) => a - b).join(';');
}

type Chosen = [place: number, value: number];
type Combination<T extends Record<string, readonly unknown[]>> = { [Name in keyof T]: T[Name][number] };
