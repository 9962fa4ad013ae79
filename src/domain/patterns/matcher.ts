import { RE2Set } from 're2js';
import type { Pattern } from './pattern.ts';

/**
 * Matches texts against patterns, whole, and keeps the compiled patterns as long as there is room.
 *
 * The time is linear in `costOf`, whatever pattern and text: re2js simulates the pattern's program one
 * character after the other. Its cache of states would be faster on some patterns and several times
 * slower on hostile ones, and would hold up to 8 MiB a pattern, so that only small programs have one, a small one.
 */
export function createMatcher(maxBytes: number): Matcher {
  const compiled = new Map<string, Compiled>();
  let bytes = 0;

  function compile(pattern: Pattern): Compiled {
    const known = compiled.get(pattern.source);
    // Moved to the end: what is dropped first is what was not used for longest.
    if (known !== undefined) compiled.delete(pattern.source);
    const entry = known ?? { program: programOf(pattern), bytes: bytesOf(pattern) };
    if (known === undefined) bytes += entry.bytes;
    compiled.set(pattern.source, entry);
    for (const [source, { bytes: freed }] of compiled) {
      if (bytes <= maxBytes) break;
      compiled.delete(source);
      bytes -= freed;
    }
    return entry;
  }

  return {
    costOf(pattern, text) {
      return costOf(pattern, text) + (compiled.has(pattern.source) ? 0 : pattern.setup);
    },
    matches: (pattern, text) => compile(pattern).program.match(text).length > 0,
  };
}

/** Matches without keeping the compiled pattern. */
export const matchOnce: PatternTest = (pattern, text) => programOf(pattern).match(text).length > 0;

/** Throws what is unsupported in a pattern, or wrong with it. Takes a part of the pattern's `setup`. */
export function parsePattern(source: string): void {
  new RE2Set().add(source);
}

/** The most steps that matching a text takes once the pattern is compiled. */
export function costOf({ size }: Pattern, text: string): number {
  const extra = size <= MAX_CACHED_SIZE ? 6 * Math.min(text.length, STATES_KEPT) : START_CHARACTERS;
  return size * (text.length + extra);
}

function programOf({ source, size }: Pattern): RE2Set {
  const set = new RE2Set(RE2Set.ANCHOR_BOTH, 0, size <= MAX_CACHED_SIZE ? STATE_CACHE_BYTES : 0);
  set.add(source);
  set.compile();
  return set;
}

function bytesOf({ size }: Pattern): number {
  return size * BYTES_PER_INSTRUCTION + STATE_CACHE_BYTES;
}

/**
 * Programs of everyday patterns are this small, and a cache of their states makes them five times
 * faster. A hostile one of that size fills the cache with some 70 states at 250 ns an instruction, then goes on
 * without it.
 */
const MAX_CACHED_SIZE = 64;
const STATE_CACHE_BYTES = 16 * 1024;
const STATES_KEPT = 70;

/** Beginning without a cache takes as long as this many characters. */
const START_CHARACTERS = 40;

/** Measured on the heap: `[a-z0-9-]{1,200}`, 401 instructions, takes 277,000 bytes. */
const BYTES_PER_INSTRUCTION = 700;

export type Matcher = {
  /** The most steps that matching a text takes now: with compiling the pattern unless it is. */
  costOf: (pattern: Pattern, text: string) => number;
  matches: PatternTest;
};

/** Whether a pattern matches the whole of a text. */
export type PatternTest = (pattern: Pattern, text: string) => boolean;

type Compiled = { program: RE2Set; bytes: number };
