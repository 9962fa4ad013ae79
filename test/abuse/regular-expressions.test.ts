import { expect, it } from 'vitest';
import { expressionsInSources, judge, keptVerdicts, nameOf } from '../support/regular-expressions.ts';

it('every regular expression of src has the verdict that is kept of it', async () => {
  const { safe, bounded } = keptVerdicts();
  const byName = new Map(expressionsInSources().known.map((each) => [nameOf(each), each]));
  const judged: [string, string][] = [];
  for (const [name, expression] of byName) judged.push([name, await judge(expression)]);

  expect(judged.filter(([, verdict]) => verdict === 'safe').map(([name]) => name)).toEqual(
    expect.arrayContaining(safe),
  );
  expect(judged.filter(([, verdict]) => verdict !== 'safe')).toEqual(
    Object.entries(bounded).map(([name, { verdict }]) => [name, verdict]),
  );
});
