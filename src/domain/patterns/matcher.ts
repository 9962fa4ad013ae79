import { LRUCache } from 'lru-cache';
import { RE2Set } from 're2js';
import { lengthOf } from '../json/json.ts';
import type { Pattern } from './pattern.ts';

/**
 * Begins the matching of one check, such as of the answers of a request: each text, whole, against its pattern.
 *
 * re2js simulates the pattern's program one character after the other, in a time linear in `stepsFor`, and can't be
 * interrupted. So the steps are counted before each match, and a text for which too few are left is not matched.
 */
export function startMatching(): PatternTest {
  let left = MAX_MATCH_STEPS;
  return (pattern, text) => {
    const length = lengthOf(text);
    if (length > pattern.longest) return 'differs';
    const steps = stepsFor(pattern, length);
    if (steps > left) return 'too_long';
    left -= steps;
    const program = compiled.memo(pattern.source, { context: pattern });
    return program.match(text).length > 0 ? 'matches' : 'differs';
  };
}

/** Throws what is unsupported in a pattern, or wrong with it. Takes a part of the pattern's `setup`. */
export function parsePattern(source: string): void {
  new RE2Set().add(source);
}

/** The most steps that matching a text of so many characters takes once the pattern is compiled. */
export function stepsFor({ size }: Pattern, length: number): number {
  return size * (length + extraCharacters(size, length));
}

/** The most characters that a text may have so that matching it takes no more than `steps`; below 0: none. */
export function lengthWithin({ size }: Pattern, steps: number): number {
  const characters = steps / size;
  const short = characters / (1 + STATE_CHARACTERS);
  const isShort = size <= MAX_CACHED_SIZE && short < STATES_KEPT;
  return Math.floor(isShort ? short : characters - extraCharacters(size, STATES_KEPT));
}

/** Making a state of the cache, or beginning without one, takes as long as so many further characters. */
function extraCharacters(size: number, length: number): number {
  return size <= MAX_CACHED_SIZE ? STATE_CHARACTERS * Math.min(length, STATES_KEPT) : START_CHARACTERS;
}

/**
 * The cache of states of re2js would be faster on some patterns and several times slower on hostile ones, and would
 * hold up to 8 MiB a pattern, so that only small programs have one, a small one.
 */
function compile({ source, size }: Pattern): RE2Set {
  const set = new RE2Set(RE2Set.ANCHOR_BOTH, 0, size <= MAX_CACHED_SIZE ? STATE_CACHE_BYTES : 0);
  set.add(source);
  set.compile();
  return set;
}

function bytesOf({ size }: Pattern): number {
  return size * BYTES_PER_INSTRUCTION + STATE_CACHE_BYTES;
}

/** Of one check: 10 to 40 ms, which nobody else is answered in. See `Pattern` for the step. */
export const MAX_MATCH_STEPS = 1_000_000;

/** Those used last: a thousand everyday ones. */
const compiled = new LRUCache<string, RE2Set, Pattern>({
  maxSize: 32 * 1024 * 1024,
  memoMethod: (_source, _stale, { context: pattern, options }) => {
    options.size = bytesOf(pattern);
    return compile(pattern);
  },
});

/**
 * Programs of everyday patterns are this small, and a cache of their states makes them five times
 * faster. A hostile one of that size fills the cache with some 70 states at 250 ns an instruction, then goes on
 * without it.
 */
const MAX_CACHED_SIZE = 64;
const STATE_CACHE_BYTES = 16 * 1024;
const STATES_KEPT = 70;
const STATE_CHARACTERS = 6;

/** Beginning without a cache takes as long as this many characters. */
const START_CHARACTERS = 40;

/** Measured on the heap: `[a-z0-9-]{1,200}`, 401 instructions, takes 277,000 bytes. */
const BYTES_PER_INSTRUCTION = 700;

/** Whether a pattern matches the whole of a text; `too_long` if matching it would take too many steps. */
export type PatternTest = (pattern: Pattern, text: string) => 'matches' | 'differs' | 'too_long';
