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
      const counts = this.#match(/\{(\d+)(,?)(\d*)\}/y);
      if (counts === undefined) return whole;
      const [, least = '', comma, most = ''] = counts;
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
