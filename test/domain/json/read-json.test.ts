import { describe, expect, it } from 'vitest';
import { Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import { failureOf } from '../../../src/domain/errors/failure.ts';
import { isInexact } from '../../../src/domain/json/json.ts';
import { linesIn, parseJson } from '../../../src/domain/json/json-text.ts';

const read = (text: string | Uint8Array) => parseJson(Buffer.from(text), 'body', 1000);

describe('readJson', () => {
  it.each([
    ['{}', {}],
    ['\uFEFF[1, "a", {"b": [null]}]', [1, 'a', { b: [null] }]],
    ['{"a": {"a": 1}, "b": {"a": 2}}', { a: { a: 1 }, b: { a: 2 } }],
    ['{"a:b": ":", "c": "{\\"c\\": 1, \\"c\\": 2}"}', { 'a:b': ':', c: '{"c": 1, "c": 2}' }],
    ['[1e300, 1200000000000000000000.5, -0.1250000000000000000000]', [1e300, 1.2e21, -0.125]],
    ['"1234567890123456789012345"', '1234567890123456789012345'],
  ])('reads %s', (text, value) => {
    expect(read(text)).toEqual({ value, isTooDeep: false });
  });

  it.each([
    ['{"a": 1, "a": 1}', 'a'],
    ['{"answers": {"x": [0, {"b": 1, "c": {}, "\\u0062": 2}]}}', 'answers.x.1.b'],
    ['[[], {"a": [1, 2], "a": 3}]', '1.a'],
    ['{"__proto__": 1, "__proto__": 2}', '__proto__'],
    ['{"a": {"x": 1, "x": 2}, "a": 3}', 'a.x'],
    ['{"\\"": 1, "\\"": 2}', '"'],
  ])('refuses %s, and says where', (text, path) => {
    const failure = refused(text);

    expect(failure?.reason).toBe(Reason.BAD_REQUEST);
    expect(failure?.violations).toEqual([expect.objectContaining({ path, message: 'Given twice' })]);
  });

  it.each(['', '{', '{"a"', '{"a": 1,}', '{"a": 1, "a": }', 'NaN', '01'])(
    'refuses %s, which is no JSON',
    (text) => {
      expect(refused(text)?.reason).toBe(Reason.BAD_REQUEST);
    },
  );

  it('refuses what is not UTF-8', () => {
    expect(refused(new Uint8Array([0x22, 0xff, 0x22]))?.reason).toBe(Reason.BAD_REQUEST);
  });

  it('makes whole numbers infinite that are too long to be exact, wherever they are', () => {
    const { value } = read(
      '{"a": [1000000000000000000000, -1234567890123456789012, 1e21, 9007199254740992]}',
    );

    expect(value).toEqual({ a: [Infinity, Infinity, 1e21, 2 ** 53] });
  });

  it('says what nests too deep', () => {
    expect(read(`${'['.repeat(33)}${']'.repeat(33)}`).isTooDeep).toBe(true);
  });
});

it.each([
  [2 ** 53 - 1, false],
  [2 ** 53, true],
  [-(2 ** 53), true],
  [2 ** 53 - 1.5, false],
  [1e20, true],
  [1e21, false],
  [Infinity, false],
])('%d may stand for another whole number: %s', (number, inexact) => {
  expect(isInexact(number)).toBe(inexact);
});

function refused(text: string | Uint8Array) {
  try {
    read(text);
  } catch (error) {
    return failureOf(error);
  }
  throw new Error('It was read');
}

describe('linesIn', () => {
  it('finds the line of each key and each item', () => {
    const text = '{\n"a": [\n{"b": "x,\\n[y"},\n\n2, [],\n3],\n"c": {"d:": null,\n"e": [[1,\n2]]}}';

    expect([...linesIn(text)]).toEqual([
      ['', 1],
      ['a', 2],
      ['a.0', 3],
      ['a.0.b', 3],
      ['a.1', 5],
      ['a.2', 5],
      ['a.2.0', 5],
      ['a.3', 6],
      ['c', 7],
      ['c.d:', 7],
      ['c.e', 8],
      ['c.e.0', 8],
      ['c.e.0.0', 8],
      ['c.e.0.1', 9],
    ]);
  });

  it('has the second of a key that comes twice', () => {
    expect(linesIn('{"a": 1,\n"a": 2}').get('a')).toBe(2);
  });
});
