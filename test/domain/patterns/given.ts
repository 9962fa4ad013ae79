import { RE2JS } from 're2js';

/** Patterns put together at random, the same ones each time, of which re2js takes every one. */
export function generatedPatterns(count: number): string[] {
  const random = randomNumbers();
  const patterns: string[] = [];
  while (patterns.length < count) {
    const length = 1 + Math.floor(random() * 12);
    const pattern = Array.from({ length }, () => parts[Math.floor(random() * parts.length)]).join('');
    if (compiles(pattern)) patterns.push(pattern);
  }
  return patterns;
}

/** Texts put together at random of characters that the patterns name. */
export function generatedTexts(count: number): string[] {
  const random = randomNumbers();
  return Array.from({ length: count }, () =>
    Array.from(
      { length: Math.floor(random() * 12) },
      () => letters[Math.floor(random() * letters.length)],
    ).join(''),
  );
}

function compiles(pattern: string): boolean {
  try {
    RE2JS.compile(pattern);
    return true;
  } catch {
    return false;
  }
}

/** A linear congruential generator: numbers in [0, 1). */
function randomNumbers(): () => number {
  let state = 20_261_122;
  return () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return state / 0x80000000;
  };
}

const letters = ['a', 'b', 'A', '-', '1', ' ', '\n', 'Ж', 'ж', '𐐀', ',', '{', ']'];

const parts = [
  'a b - Ж 𐐀 , 1 { } . ^ $ | * + ? ??',
  '( (?: (?i) (?s) (?m: (?P<n> (?i: ) ) )',
  '{2} {0,3} {2,} {3,5} {0} {1} {,3}',
  String.raw`[ [^ ] [:alpha:] [[:^digit:]] [a-z] \] \[`,
  String.raw`\pL \p{Greek} \P{L} \x{41} \x41 \12 \Q \E \b \B \d \W \x20`,
].flatMap((line) => line.split(' '));
