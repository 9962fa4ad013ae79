import { LRUCache } from 'lru-cache';
import { RE2Set } from 're2js';
import { lengthOf } from '../json/json.ts';

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

/**
 * Reads how much work a pattern is, without compiling it: a pattern of 256 characters can have a
 * program of 240,000 instructions, which takes a fifth of a second to compile.
 *
 * The numbers are upper bounds for every pattern that compiles; of others they mean nothing.
 */
export function readPattern(source: string): Pattern {
  const reader = new PatternReader(source);
  const { instructions, wide, longest } = reader.readAlternatives();
  const size = instructions + FRAME;
  return {
    source,
    size,
    longest,
    setup: size * PER_INSTRUCTION + wide * PER_WIDE_INSTRUCTION + reader.parsing,
  };
}

/** Recursive descent by the syntax of RE2: https://github.com/google/re2/wiki/Syntax */
class PatternReader {
  /** What reading character classes takes, in steps. Repeat counts do not multiply it. */
  parsing = 0;
  readonly #source: string;
  readonly #foldsCase: boolean;
  #at = 0;

  constructor(source: string) {
    this.#source = source;
    this.#foldsCase = /\(\?[a-zA-Z-]*i/.test(source);
  }

  /** Reads up to the end of the group, or of the pattern. */
  readAlternatives(): Program {
    let whole = this.#readSequence();
    while (this.#take('|')) {
      const other = this.#readSequence();
      const longest = Math.max(whole.longest, other.longest);
      whole = { ...join(whole, other, 1), longest };
    }
    return whole;
  }

  /** An empty sequence is an instruction, too. */
  #readSequence(): Program {
    let whole: Program = { instructions: 1, wide: 0, longest: 0 };
    while (this.#at < this.#source.length && !this.#isNext('|') && !this.#isNext(')')) {
      whole = join(whole, this.#readRepeated());
    }
    return whole;
  }

  #readRepeated(): Program {
    let whole = this.#readAtom();
    for (;;) {
      // Flags such as `(?i)` can't be repeated: what follows them repeats what comes before them.
      if (this.#match(/\(\?[a-zA-Z-]+\)/y) !== undefined) continue;
      if (this.#take('?')) {
        whole = join(whole, BRANCHES);
        continue;
      }
      if (this.#take('*') || this.#take('+')) {
        whole = { ...join(whole, BRANCHES), longest: whole.longest === 0 ? 0 : Infinity };
        continue;
      }
      const counts = this.#match(/\{(\d+)(?:(,)(\d*))?\}/y);
      if (counts === undefined) return whole;
      const [, least = '', comma = '', most = ''] = counts;
      whole = repeat(
        whole,
        Number(least),
        comma === '' ? Number(least) : most === '' ? undefined : Number(most),
      );
    }
  }

  #readAtom(): Program {
    if (this.#take('(')) return this.#readGroup();
    if (this.#take('[')) return this.#readClass();
    const literal = this.#match(/\\Q(.*?)(?:\\E|$)/sy);
    if (literal !== undefined) {
      const { length } = literal[1] ?? '';
      return { instructions: 1 + length, wide: 0, longest: length };
    }
    if (this.#match(/\\[pP](?:\{[^}]*\}|.)/sy) === undefined) {
      this.#readCharacter();
      return ONE_CHARACTER;
    }
    this.parsing += PER_UNICODE_CLASS;
    return { ...ONE_CHARACTER, wide: 1 };
  }

  /** Flags such as `(?i)` are a group of nothing. */
  #readGroup(): Program {
    this.#match(/\?(?:P?<[^>]*>|[a-zA-Z-]*:?)/y);
    const inner = this.readAlternatives();
    this.#take(')');
    return join(inner, BRANCHES);
  }

  /** A first `]` is a character, and so is a `[` that begins no name such as `[:alpha:]`. */
  #readClass(): Program {
    this.#take('^');
    const before = this.parsing;
    let first = true;
    while (this.#at < this.#source.length && (first || !this.#isNext(']'))) {
      first = false;
      if (this.#match(/\\[pP](?:\{[^}]*\}|.)/sy) !== undefined) this.parsing += PER_UNICODE_CLASS;
      else if (this.#match(/\[:.*?:\]/sy) === undefined) this.#readRange();
    }
    this.#take(']');
    return { ...ONE_CHARACTER, wide: this.parsing > before ? 1 : 0 };
  }

  /** Where case does not matter, re2js looks up every character of a range by itself. */
  #readRange(): void {
    const low = this.#readCharacter();
    const high = this.#match(/-(?!\])/y) === undefined ? low : this.#readCharacter();
    if (this.#foldsCase && high > LAST_ASCII) this.parsing += Math.max(high - low, 0) * PER_FOLDED_CHARACTER;
  }

  /** Reads one character, escaped or not, and returns its code point. */
  #readCharacter(): number {
    const hex = this.#match(/\\x(?:\{([0-9a-fA-F]+)\}|([0-9a-fA-F]{2}))/y);
    if (hex !== undefined) return Number.parseInt(hex[1] ?? hex[2] ?? '', 16);
    const octal = this.#match(/\\([0-7]{1,3})/y);
    if (octal !== undefined) return Number.parseInt(octal[1] ?? '', 8);
    return this.#match(/\\?(.)/suy)?.[1]?.codePointAt(0) ?? 0;
  }

  #isNext(character: string): boolean {
    return this.#source[this.#at] === character;
  }

  #take(character: string): boolean {
    if (!this.#isNext(character)) return false;
    this.#at += 1;
    return true;
  }

  /** Takes what an expression with the flag `y` finds here. */
  #match(expression: RegExp): RegExpExecArray | undefined {
    expression.lastIndex = this.#at;
    const found = expression.exec(this.#source);
    if (found === null) return undefined;
    this.#at += found[0].length;
    return found;
  }
}

function join(one: Program, other: Program, between = 0): Program {
  return {
    instructions: one.instructions + other.instructions + between,
    wide: one.wide + other.wide,
    longest: one.longest + other.longest,
  };
}

/** `most`: undefined if there is no upper limit. */
function repeat(program: Program, least: number, most: number | undefined): Program {
  const copies = Math.max(1, most ?? least);
  const choices = most === undefined ? 2 : Math.max(0, most - least);
  const longest = program.longest === 0 ? 0 : program.longest * (most === undefined ? Infinity : copies);
  return { instructions: copies * program.instructions + choices, wide: copies * program.wide, longest };
}

const ONE_CHARACTER: Program = { instructions: 1, wide: 0, longest: 1 };

/** What a loop, a choice or a group adds. */
const BRANCHES: Program = { instructions: 2, wide: 0, longest: 0 };

/** The instructions that every program has: to fail, to match. */
const FRAME = 3;

/**
 * What setting up a pattern takes, in steps of matching. Measured with re2js 2.10.0 on Node 24, where a step
 * takes 10 to 40 ns: compiling `a{1000}` 36 times over takes 0.6 to 1.4 µs an instruction; `\pL{1000}` 27
 * times over 16 µs, as its classes are 650 ranges; reading a class such as `\pL` 0.1 to 0.8 ms; `(?i)[Ā-ﻼ]`
 * 2.5 ms for 65,000 characters.
 */
const PER_INSTRUCTION = 100;
const PER_WIDE_INSTRUCTION = 1_600;
const PER_UNICODE_CLASS = 40_000;
const PER_FOLDED_CHARACTER = 4;

const LAST_ASCII = 127;

/**
 * A part of a pattern's program; `wide` counts those instructions whose class has hundreds of ranges, `longest` the
 * characters of the longest text that it matches.
 */
type Program = { instructions: number; wide: number; longest: number };

/** A pattern and what it costs. A step is one instruction over one character, or what takes as long. */
export type Pattern = {
  source: string;
  /** The instructions of the compiled program, repeats written out. */
  size: number;
  /** The most characters of a text that it can match; infinite if there is no limit. */
  longest: number;
  /** Steps to compile it, once. */
  setup: number;
};
