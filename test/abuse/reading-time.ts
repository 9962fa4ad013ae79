import { REFERENCE_MS, timeReferenceWork } from './processor-wait.ts';

/** How much a reader gets: as much as a form made without a key may hold. */
export const FULL = 64 * 1024;

/** Processor time that one reading may take, in milliseconds: as long as nobody notices that others wait. */
export const MOST_MS = 50;

/** How many times as long a reading may take for four times the text. A quadratic one takes sixteen times as long. */
const MOST_TIMES = 6;

/** Below this the clock, the compiler and the garbage of others weigh more than the reading. */
const FLOOR_MS = 8;

/** What takes long by itself does so each time. What seems to take too long is tried more often. */
export const TRIES = 3;
export const TRIES_OF_EXCESS = 10;

/**
 * What is wrong with the time that readings of an input take, at a quarter of its size and at the whole; `worst` is the
 * longest that is not refuted by a repetition. The smaller ones come first, so that a quadratic one ends early.
 */
export async function timeOf(input: Input): Promise<Timed> {
  const { name, reader } = input;
  let [before, worst] = [0, 0];
  await processorMs(() => input.read(input.make(FULL / 256)));
  for (const size of [FULL / 16, FULL / 4, FULL]) {
    // What takes next to no time for a sixteenth takes no long time for a quarter, whatever its growth.
    if (size === FULL / 4 && before < FLOOR_MS / 16) continue;
    const made = input.make(size);
    const limit = before < FLOOR_MS ? MOST_MS : Math.min(MOST_MS, before * MOST_TIMES);
    let best = Number.POSITIVE_INFINITY;
    for (let n = 0; n < TRIES && best > Math.min(limit, FLOOR_MS * 2); n += 1) {
      best = Math.min(best, await processorMs(() => input.read(made)));
    }
    const isSlow = () => best > limit * slowness;
    if (best > limit) await measureSlowness();
    for (let n = TRIES; n < TRIES_OF_EXCESS && isSlow(); n += 1) {
      best = Math.min(best, await processorMs(() => input.read(made)));
    }
    worst = Math.max(worst, best);
    if (isSlow()) {
      const growth =
        before < FLOOR_MS ? '' : `, ${(best / before).toFixed(1)} times as long as for a quarter`;
      return {
        name,
        reader,
        worst,
        made,
        fault: `${name}: ${best.toFixed(1)} ms for ${size / 1024} KiB${growth}`,
      };
    }
    before = best;
    if (size === FULL) return { name, reader, worst, made };
  }
  throw new Error('No size');
}

/** How many times as slow the machine is as that for which the bounds are written, when it was measured last. */
export let slowness = 1;

export async function measureSlowness(): Promise<void> {
  const best = Math.min(...Array.from({ length: TRIES }, timeReferenceWork));
  slowness = Math.max(1, best / REFERENCE_MS);
}

/** Processor time of this thread while work is done: what V8 does beside it keeps nobody waiting. */
async function processorMs(work: () => unknown): Promise<number> {
  const begun = process.threadCpuUsage();
  try {
    await work();
  } catch {
    // Refused, which is as good.
  }
  const { user, system } = process.threadCpuUsage(begun);
  return (user + system) / 1_000;
}

/**
 * The texts that a grammar may stumble over: each of the characters that it knows, and each two of them, over and over,
 * after `start`, and each of them with an end that fits nothing.
 */
export function* hostileTexts(
  alphabet: readonly string[],
  start = '',
): Generator<{ name: string; make: (size: number) => string }> {
  const pairs = alphabet.flatMap((one, index) => alphabet.slice(index + 1).map((other) => one + other));
  const units = new Set([...alphabet, ...pairs]);
  for (const unit of units) {
    for (const end of ['', WRONG_END]) {
      const name = `${start}${JSON.stringify(unit)} over and over${end && ', ending wrongly'}`;
      yield { name, make: (size) => start + unit.repeat(Math.ceil(size / unit.length)).slice(0, size) + end };
    }
  }
}

/** Neither a character of a grammar nor a space or a control. */
const WRONG_END = '\u00a1';

/**
 * What can be blown up in a JSON value: at each place of it a list or an object gets as many members as fit, alike and
 * each with texts of its own; an object gets names that nobody knows, and such as are nearly known; a text gets long; and
 * everything becomes a list, or an object, of what does not belong there.
 */
export function* hostileValues(
  sample: unknown,
): Generator<{ name: string; make: (size: number) => unknown }> {
  for (const path of placesIn(sample)) {
    const value = valueAt(sample, path);
    for (const [kind, grow] of growthsOf(value)) {
      yield {
        name: `${kind} at ${path.join('.') || 'the root'}`,
        make: (size) => changed(sample, path, grow(size)),
      };
    }
  }
}

function growthsOf(value: unknown): [name: string, grow: (size: number) => unknown][] {
  const own: [string, (size: number) => unknown][] = [];
  if (Array.isArray(value)) {
    const [first = 'x'] = value;
    own.push(['the same item again and again', (size) => items(first, size, (each) => each)]);
    own.push(['items with texts of their own', (size) => items(first, size, distinct)]);
    own.push([
      'items with long texts of their own',
      (size) => items(first, size, (each, n) => distinct(each, n, 50)),
    ]);
  } else if (typeof value === 'object' && value !== null) {
    const [[key, first] = ['x', 1]] = Object.entries(value);
    const names = Object.keys(value);
    own.push(['unknown names', (size) => ({ ...value, ...members(size, 1, (n) => `u${n}`) })]);
    own.push([
      'unknown long names',
      (size) => ({ ...value, ...members(size, 1, (n) => `${'u'.repeat(59)}${n}`) }),
    ]);
    own.push([
      'names nearly known',
      (size) => ({
        ...value,
        ...members(size, 1, (n) => `${names[n % Math.max(1, names.length)] ?? key}${n.toString(36)}`),
      }),
    ]);
    own.push([
      'members like the first',
      (size) => ({ ...value, ...members(size, first, (n) => `${key}${n}`) }),
    ]);
  } else if (typeof value === 'string') {
    own.push(
      ['a long text', (size) => value.charAt(0).padEnd(size, 'a')],
      ['brackets', (size) => '['.repeat(size)],
    );
  }
  return [
    ...own,
    ['a list of numbers', (size) => Array.from({ length: size / 2 }, () => 1)],
    ['a list of empty objects', (size) => Array.from({ length: size / 3 }, () => ({}))],
    ['a list of lists', (size) => Array.from({ length: size / 3 }, () => [])],
    ['an object of numbers', (size) => members(size, 1, (n) => `u${n}`)],
  ];
}

function items(item: unknown, size: number, each: (item: unknown, n: number) => unknown): unknown[] {
  const length = JSON.stringify(each(item, 10_000) ?? null).length + 1;
  return Array.from({ length: Math.ceil(size / length) }, (_, n) => each(item, n));
}

function members(size: number, value: unknown, nameOf: (n: number) => string): object {
  const length = JSON.stringify(value ?? null).length + nameOf(10_000).length + 4;
  return Object.fromEntries(Array.from({ length: Math.ceil(size / length) }, (_, n) => [nameOf(n), value]));
}

/** The same value with a number in each of its texts. */
function distinct(value: unknown, n: number, padding = 0): unknown {
  if (typeof value === 'string') return `${value}${'x'.repeat(padding)}${n}`;
  if (Array.isArray(value)) return value.map((each) => distinct(each, n, padding));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [key, keywords.has(key) ? each : distinct(each, n, padding)]),
  );
}

/** What tells which of several shapes a value has stays as it is. */
const keywords = new Set(['type', 'op', 'format', 'kind', '$ref']);

/** Each place once: of the items of a list, and of the members of an object alike, the first that has it. */
function placesIn(value: unknown): Path[] {
  const places = new Map<string, Path>();
  const visit = (within: unknown, path: Path, kind: string) => {
    if (!places.has(kind)) places.set(kind, path);
    if (typeof within !== 'object' || within === null) return;
    for (const [key, each] of Object.entries(within)) {
      const step = Array.isArray(within) ? typeof each : key;
      visit(each, [...path, Array.isArray(within) ? Number(key) : key], `${kind}.${step}`);
    }
  };
  visit(value, [], '');
  return [...places.values()];
}

type Path = (string | number)[];

function valueAt(value: unknown, path: readonly (string | number)[]): unknown {
  return path.reduce<unknown>((within, key) => Reflect.get(Object(within), key), value);
}

function changed(value: unknown, [key, ...rest]: readonly (string | number)[], made: unknown): unknown {
  if (key === undefined) return made;
  const copy: unknown = Array.isArray(value) ? [...value] : { ...Object(value) };
  Reflect.set(Object(copy), key, changed(Reflect.get(Object(value), key), rest, made));
  return copy;
}

/** One way to keep a reader busy. */
export type Input = {
  reader: string;
  name: string;
  make: (size: number) => unknown;
  read: (made: unknown) => unknown;
};

/** `worst` in milliseconds; `made` is the largest that was read. */
export type Timed = { reader: string; name: string; worst: number; made: unknown; fault?: string };
