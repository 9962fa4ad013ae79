import { Code, ConnectError } from '@connectrpc/connect';
import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { matchOnce, type PatternTest } from '../../../src/domain/patterns/matcher.ts';
import { readPattern } from '../../../src/domain/patterns/pattern.ts';
import { createPatternMatching } from '../../../src/services/patterns/pattern-matching.ts';

const cheap = readPattern('[a-z]+@[a-z]+');
const expensive = readPattern('(?:[ab]*a[ab]{200}|.*b[ab]{200})c');
/** Some two seconds each. */
const endless = Array.from({ length: 40 }, () => 'ab'.repeat(200_000));

const owner = async () => ({ project: 'p', form: 'form_1' });
const noOwner = () => Promise.reject(new Error('Nothing is to be asked'));

describe('matching the patterns of a check', () => {
  it('is done at once where it is cheap', async () => {
    await using given = givenMatching();

    const matched = await given.matching.run(
      (matches) => ['a@b', 'a', 'a@b'].map((text) => matches(cheap, text)),
      noOwner,
    );

    expect(matched).toEqual([true, false, true]);
  });

  it('finds the same in a worker thread where it is expensive', async () => {
    await using given = givenMatching();
    const texts = [`${'b'.repeat(2_000)}c`, 'b'.repeat(2_000), `${'ab'.repeat(1_000)}c`, 'c'];

    const matched = await given.matching.run(
      (matches) => [matches(cheap, 'a@b'), ...texts.map((text) => matches(expensive, text))],
      owner,
    );

    expect(matched).toEqual([true, ...texts.map((text) => matchOnce(expensive, text))]);
    expect(matched.slice(1, 3)).toEqual([true, false]);
  });

  it('goes to a worker thread, too, where much is cheap one by one', async () => {
    await using given = givenMatching();
    let asked = 0;
    const countingOwner = () => {
      asked += 1;
      return owner();
    };

    const many = Array.from({ length: 100 }, (_, index) => `${'a'.repeat(300)}@${'b'.repeat(index)}`);
    const matched = await given.matching.run(allMatch(cheap, many), countingOwner);

    expect(matched).toEqual(many.map((_, index) => index > 0));
    expect(asked).toBe(1);
  });

  it('is refused if it takes too long, and a new thread does what comes next', async () => {
    await using given = givenMatching({ timeLimitMs: 1_000 });

    const late = given.matching
      .run(allMatch(expensive, endless), owner)
      .catch((error: unknown) => ConnectError.from(error));
    const next = given.matching.run(allMatch(expensive, [`${'b'.repeat(500)}c`]), owner);

    expect(await late).toMatchObject({ code: Code.Unavailable });
    expect(await late).toHaveProperty(
      'metadata',
      expect.toSatisfy((header: Headers) => header.has('retry-after')),
    );
    expect(await next).toEqual([true]);
    expect(given.logged.map((line) => JSON.parse(line))).toMatchObject([{ level: 40, formId: 'form_1' }]);
  });

  it('refuses a form that has much waiting, while others are served', async () => {
    await using given = givenMatching();
    const run = (form: string, texts: string[]) =>
      given.matching
        .run(allMatch(expensive, texts), async () => ({ project: 'p', form }))
        .then(
          () => 'done',
          (error: unknown) => ConnectError.from(error).code,
        );

    const greedy = Array.from({ length: 10 }, () => run('form_1', ['ab'.repeat(5_000)]));
    const modest = run('form_2', ['b'.repeat(500)]);

    expect(await modest).toBe('done');
    const outcomes = await Promise.all(greedy);
    expect(outcomes.filter((outcome) => outcome === Code.Unavailable).length).toBeGreaterThanOrEqual(4);
    expect(outcomes.slice(0, 4)).toEqual(['done', 'done', 'done', 'done']);
  });

  it('is refused when the service stops', async () => {
    await using given = givenMatching();

    const begun = given.matching
      .run(allMatch(expensive, endless), owner)
      .catch((error: unknown) => ConnectError.from(error));
    await given.matching.close();

    expect(await begun).toMatchObject({ code: Code.Unavailable });
    const later = given.matching
      .run(allMatch(expensive, endless), owner)
      .catch((error: unknown) => ConnectError.from(error));
    expect(await later).toMatchObject({ code: Code.Unavailable });
  });
});

function allMatch(pattern: typeof cheap, texts: string[]) {
  return (matches: PatternTest) => texts.map((text) => matches(pattern, text));
}

function givenMatching(options: { timeLimitMs?: number } = {}) {
  const logged: string[] = [];
  const log = pino({}, { write: (line) => logged.push(line) });
  const matching = createPatternMatching({ log, ...options });
  return { matching, logged, [Symbol.asyncDispose]: () => matching.close() };
}
