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
    const edits = countEdits(given, letters, most);
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

/**
 * Damerau–Levenshtein distance (optimal string alignment), or more than `most` if it is more: row by row, and of each
 * only the columns that so many edits can reach, with one beyond. A request can make us compare thousands of names.
 */
function countEdits(one: string, other: string, most: number): number {
  let [beforeLast, last, current] = rows;
  for (let row = 0; row <= one.length; row++) {
    let fewest = FAR;
    const end = Math.min(other.length, row + most + 1);
    for (let column = Math.max(0, row - most - 1); column <= end; column++) {
      const same = one[row - 1] === other[column - 1];
      const swapped = one[row - 1] === other[column - 2] && one[row - 2] === other[column - 1];
      let edits = Math.min(
        at(last, column) + 1,
        at(current, column - 1) + 1,
        at(last, column - 1) + (same ? 0 : 1),
      );
      if (swapped) edits = Math.min(edits, at(beforeLast, column - 2) + 1);
      if (row === 0 || column === 0) edits = row + column;
      if (Math.abs(row - column) > most) edits = FAR;
      current[column] = edits;
      fewest = Math.min(fewest, edits);
    }
    if (fewest > most) return FAR;
    [beforeLast, last, current] = [last, current, beforeLast];
  }
  return at(last, other.length);
}

function at(row: readonly number[], column: number): number {
  return row[column] ?? FAR;
}

const rows: [number[], number[], number[]] = [[], [], []];

/** More edits than anybody asks about. */
const FAR = 1_000;
