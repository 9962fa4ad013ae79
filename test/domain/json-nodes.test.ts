import { expect, it } from 'vitest';
import { hasMoreNodes } from '../../src/domain/json-nodes.ts';

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

  expect(hasMoreNodes(json, nodes)).toBe(false);
  expect(hasMoreNodes(json, nodes - 1)).toBe(true);
});

it.each(['', '[', '"', '"\\', '{"a":[,,', '[['.repeat(1000)])('ends on what is no JSON: %s', (text) => {
  expect(hasMoreNodes(new TextEncoder().encode(text), 10_000)).toBe(false);
});
