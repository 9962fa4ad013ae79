import { expect, it } from 'vitest';
import { jsonExcess } from '../../../src/domain/json/json-nodes.ts';

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

  expect(jsonExcess(json, { maxNodes: nodes, maxDepth: 9 })).toBeUndefined();
  expect(jsonExcess(json, { maxNodes: nodes - 1, maxDepth: 9 })).toBe('nodes');
});

it.each([
  ['1', 0],
  ['[]', 1],
  ['[[], {}, []]', 2],
  ['{"a": [{"b": "[[["}], "c": {}}', 3],
])('measures how deep %s is', (text, depth) => {
  const json = new TextEncoder().encode(text);

  expect(jsonExcess(json, { maxNodes: 9, maxDepth: depth })).toBeUndefined();
  expect(jsonExcess(json, { maxNodes: 9, maxDepth: depth - 1 })).toBe('depth');
});

it.each(['', '[', '"', '"\\', '{"a":[,,', '[['.repeat(1000)])('ends on what is no JSON: %s', (text) => {
  expect(jsonExcess(new TextEncoder().encode(text), { maxNodes: 10_000, maxDepth: 10_000 })).toBeUndefined();
});
