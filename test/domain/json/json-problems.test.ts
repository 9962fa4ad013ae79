import { describe, expect, it } from 'vitest';
import { jsonProblems, scanJson, textProblem } from '../../../src/domain/json/json-problems.ts';

function nested(levels: number): unknown {
  let value: unknown = [];
  for (let level = 1; level < levels; level++) value = [value];
  return value;
}

describe('textProblem', () => {
  it.each(['', 'x', 'ä', '👍', '\u0001', '\uffff'])('accepts %j', (text) => {
    expect(textProblem(text)).toBeUndefined();
  });

  it.each(['\0', 'a\0b', '\ud800', '\udc00x', '\ude00\ud83d'])('refuses %j', (text) => {
    expect(textProblem(text)).toEqual(expect.any(String));
  });
});

describe('jsonProblems', () => {
  it('accepts any JSON that is shallow and well-formed', () => {
    expect(jsonProblems({ a: [1, null, true, 'x', { '': '' }] }, 'metadata')).toEqual([]);
    expect(jsonProblems(nested(32), 'metadata')).toEqual([]);
    expect(jsonProblems(undefined, '')).toEqual([]);
  });

  it('names each bad text and key where it stands, in order', () => {
    const value = { a: '\0', b: [{ 'c\0': 1 }, '\ud800'], d: 'fine' };

    expect(jsonProblems(value, 'metadata').map(({ path }) => path)).toEqual([
      'metadata.a',
      'metadata.b.0.c\0',
      'metadata.b.1',
    ]);
  });

  it('names each number that JSON can’t say', () => {
    const value = { a: [Number.NaN, 1], b: Number.POSITIVE_INFINITY };

    expect(jsonProblems(value, 'm').map(({ path, code }) => [path, code])).toEqual([
      ['m.a.0', 'invalid_type'],
      ['m.b', 'invalid_type'],
    ]);
  });

  it('stops at what is too deep', () => {
    expect(jsonProblems(nested(33), '')).toHaveLength(1);
    expect(jsonProblems(nested(100_000), '')).toHaveLength(1);

    const circle: Record<string, unknown> = {};
    circle.self = circle;
    expect(jsonProblems(circle, '')).toHaveLength(1);
  });

  it('names a hundred problems at most', () => {
    const problems = jsonProblems(
      Array.from({ length: 100_000 }, () => '\0'),
      'prefill',
    );

    expect(problems).toHaveLength(100);
  });

  it('looks into no list or object that has too many members', () => {
    const value = { list: ['\0', '\0', '\0'], object: { a: '\0', b: 1, c: 2 }, fits: ['\0', 1] };

    expect(jsonProblems(value, '', { maxMembers: 2 }).map(({ path, code }) => [path, code])).toEqual([
      ['', 'too_big'],
    ]);
    expect(jsonProblems([value], '', { maxMembers: 3 }).map(({ path }) => path)).toEqual([
      '0.list.0',
      '0.list.1',
      '0.list.2',
      '0.object.a',
      '0.fits.0',
    ]);
  });

  it('looks at names of prototypes like at any other', () => {
    const value = JSON.parse('{"__proto__":{"x":"\\u0000"},"constructor":"\\ud800"}');

    expect(jsonProblems(value, 'm').map(({ path }) => path)).toEqual(['m.__proto__.x', 'm.constructor']);
  });
});

it.each([
  ['1', 1],
  ['[]', 1],
  ['{ }', 1],
  ['[1, 2]', 3],
  ['[ [ ] , {} ]', 3],
  ['{"a": 1, "b": [2, {"c": null}]}', 6],
  ['["a,[{", "\\"[1,2]\\\\", "\\\\"]', 4],
])('counts the values of %s', (text, nodes) => {
  const json = new TextEncoder().encode(text);

  expect(scanJson(json, { maxNodes: nodes, maxDepth: 9 }).excess).toBeUndefined();
  expect(scanJson(json, { maxNodes: nodes - 1, maxDepth: 9 }).excess).toBe('nodes');
});

it.each([
  ['1', 0],
  ['[]', 1],
  ['[[], {}, []]', 2],
  ['{"a": [{"b": "[[["}], "c": {}}', 3],
])('measures how deep %s is', (text, depth) => {
  const json = new TextEncoder().encode(text);

  expect(scanJson(json, { maxNodes: 9, maxDepth: depth }).excess).toBeUndefined();
  expect(scanJson(json, { maxNodes: 9, maxDepth: depth - 1 }).excess).toBe('depth');
});

it.each(['', '[', '"', '"\\', '{"a":[,,', '[['.repeat(1000)])('ends on what is no JSON: %s', (text) => {
  expect(
    scanJson(new TextEncoder().encode(text), { maxNodes: 10_000, maxDepth: 10_000 }).excess,
  ).toBeUndefined();
});
