/**
 * Returns the known name that `name` is most likely a misspelling of, or undefined if none is near: the first
 * of the nearest ones, in the order of `known`.
 *
 * Upper and lower case, `_` and `-` don't count. Beyond that a name may differ by one letter added, missing,
 * replaced or swapped with its neighbour, and by two of these if it has ten letters or more; with the usual two
 * for all, the variable `HOME` would be a misspelt `HOST`.
 */
export function nearestName(name: string, known: Iterable<string>): string | undefined {
  const given = lettersOf(name);
  let nearest: string | undefined;
  let fewest = Number.POSITIVE_INFINITY;
  for (const candidate of known) {
    const letters = lettersOf(candidate);
    const most = letters.length >= LONG_NAME ? 2 : 1;
    // Names come from callers and can be as long as a request body.
    if (Math.abs(letters.length - given.length) > most) continue;
    const edits = countEdits(given, letters);
    if (edits <= most && edits < letters.length / 2 && edits < fewest) {
      nearest = candidate;
      fewest = edits;
    }
  }
  return nearest;
}

/** From this many letters on, two mistakes still leave no doubt. */
const LONG_NAME = 10;

function lettersOf(name: string): string {
  return name.toLowerCase().replaceAll(/[_-]/g, '');
}

/** Damerau–Levenshtein distance (optimal string alignment): row by row, keeping the last two rows. */
function countEdits(one: string, other: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: other.length + 1 }, (_, column) => column);
  for (let row = 1; row <= one.length; row++) {
    const current = [row];
    for (let column = 1; column <= other.length; column++) {
      const same = one[row - 1] === other[column - 1];
      const swapped = one[row - 1] === other[column - 2] && one[row - 2] === other[column - 1];
      current[column] = Math.min(
        at(last, column) + 1,
        at(current, column - 1) + 1,
        at(last, column - 1) + (same ? 0 : 1),
        swapped ? at(beforeLast, column - 2) + 1 : Number.POSITIVE_INFINITY,
      );
    }
    [beforeLast, last] = [last, current];
  }
  return at(last, other.length);
}

function at(row: readonly number[], column: number): number {
  return row[column] ?? Number.POSITIVE_INFINITY;
}
