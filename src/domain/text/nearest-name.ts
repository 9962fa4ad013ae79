/**
 * Returns the known name that `name` is most likely a misspelling of, or undefined if none is near: the first
 * of the nearest ones, in the order of `known`. `questions`, `fields` and `definition` are near to each other.
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
    const most = Math.min(letters.length >= LONG_NAME ? 2 : 1, fewest - 1);
    // Names come from callers and can be as long as a request body.
    if (Math.abs(letters.length - given.length) > most) continue;
    const edits = countEdits(given, letters, most);
    if (edits <= most && edits < letters.length / 2) {
      nearest = candidate;
      fewest = edits;
    }
  }
  return nearest ?? (alike.has(name) ? [...known].find((candidate) => alike.has(candidate)) : undefined);
}

/** What models take for one another: what is asked. */
const alike: ReadonlySet<string> = new Set(['questions', 'fields', 'definition']);

/** From this many letters on, two mistakes still leave no doubt. */
const LONG_NAME = 10;

function lettersOf(name: string): string {
  return name.toLowerCase().replaceAll(/[_-]/g, '');
}

/**
 * Damerau–Levenshtein distance (optimal string alignment) of what is behind `at` in one and `behind` in another, or more
 * than `most` if it is more. The way branches at each edit, of which there are two at most: a request can make us compare
 * thousands of names.
 */
function countEdits(one: string, other: string, most: number, at = 0, behind = 0): number {
  let [i, j] = [at, behind];
  while (i < one.length && one.charCodeAt(i) === other.charCodeAt(j)) {
    i += 1;
    j += 1;
  }
  const left = Math.max(one.length - i, other.length - j);
  if (left === 0) return 0;
  if (most === 0) return FAR;
  const isSwapped = one[i] === other[j + 1] && one[i + 1] === other[j] && i + 1 < one.length;
  return (
    1 +
    Math.min(
      countEdits(one, other, most - 1, i + 1, j + 1),
      countEdits(one, other, most - 1, i + 1, j),
      countEdits(one, other, most - 1, i, j + 1),
      isSwapped ? countEdits(one, other, most - 1, i + 2, j + 2) : FAR,
    )
  );
}

/** More edits than anybody asks about. */
const FAR = 1_000;
