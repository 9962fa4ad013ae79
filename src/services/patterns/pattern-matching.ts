import { createMatcher, type PatternTest } from '../../domain/patterns/matcher.ts';
import type { Owner } from './fair-queue.ts';
import { createPatternThreads, type PatternTask, type ThreadOptions } from './pattern-threads.ts';

/**
 * Runs checks that match patterns of forms: at once as long as that is cheap, else in worker threads.
 *
 * A cheap match takes less than handing it to a thread and back would. What all cheap matches of a check take together
 * is limited, too, so that no check blocks the process for more than some milliseconds.
 */
export function createPatternMatching(options: ThreadOptions): PatternMatching {
  const matcher = createMatcher(KEPT_BYTES);
  const threads = createPatternThreads(options);

  return {
    async run(check, ownerOf) {
      const expensive: PatternTask[] = [];
      let room = MAX_STEPS_AT_ONCE;
      const result = check((pattern, text) => {
        const cost = matcher.costOf(pattern, text);
        if (cost <= room) {
          room -= cost;
          return matcher.matches(pattern, text);
        }
        expensive.push({ source: pattern.source, text });
        return true;
      });
      if (expensive.length === 0) return result;

      const matched = await threads.match(await ownerOf(), expensive);
      const found = new Map(expensive.map((task, index) => [keyOf(task), matched[index] === true]));
      return check(({ source, ...rest }, text) => {
        return found.get(keyOf({ source, text })) ?? matcher.matches({ source, ...rest }, text);
      });
    },
    close: () => threads.close(),
  };
}

/** No text of a form holds NUL. */
function keyOf({ source, text }: PatternTask): string {
  return `${source}\0${text}`;
}

/** One to four milliseconds: see `Pattern` for the step. */
const MAX_STEPS_AT_ONCE = 100_000;

/** A thousand everyday patterns. */
const KEPT_BYTES = 32 * 1024 * 1024;

export type PatternMatching = {
  /**
   * Returns the result of `check`, which must be the same each time: where a match is expensive it is first run as
   * though the text matched, and again when that is known. `ownerOf` is asked only then. Throws UNAVAILABLE if matching
   * takes too long.
   */
  run: <T>(check: (matches: PatternTest) => T, ownerOf: () => Promise<Owner>) => Promise<T>;
  close: () => Promise<void>;
};
