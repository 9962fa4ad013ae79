import { describe, expect, it } from 'vitest';
import { type AnswersOptions, type CompiledForm, mergeAnswers } from '../../../src/domain/answers/answers.ts';
import { givenForm, options } from '../given.ts';

function refusals(form: CompiledForm, answers: unknown, checkOptions?: AnswersOptions): string[] {
  const result = form.checkAnswers(answers, checkOptions);
  return result.ok ? [] : result.violations.map(({ path, code }) => `${path} ${code}`);
}

const upload = { upload_id: `upl_0${'1'.repeat(25)}` };

describe('answers by type', () => {
  it.each<[object, unknown[], Record<string, unknown[]>]>([
    [
      { type: 'text' },
      ['x', ' ', 'ä\n', 'x'.repeat(10_000)],
      {
        invalid_type: [1, true, ['x'], {}],
        invalid_string: ['a\0', '\ud800'],
        too_big: ['x'.repeat(10_001)],
      },
    ],
    [
      { type: 'textarea', minLength: 2, maxLength: 3 },
      ['ab', 'abc', '👍👍👍'],
      { too_small: ['a', '👍'], too_big: ['abcd'] },
    ],
    [
      { type: 'text', pattern: '[a-z]+|\\d{2}' },
      ['abc', '12'],
      { invalid_string: ['abc1', '123', 'A', 'abc\n'] },
    ],
    [{ type: 'text', pattern: '(a+)+' }, ['aaa'], { invalid_string: [`${'a'.repeat(9_999)}!`] }],
    [
      { type: 'email' },
      ['a@b.co', "o'neil+x@mail.example.com"],
      {
        invalid_type: [1],
        invalid_string: ['a', 'a@b', 'A <a@b.co>', 'a@b.co\nBcc: c@d.co', 'a@b.co,c@d.co'],
      },
    ],
    [
      { type: 'url' },
      ['https://a.co', 'HTTP://a.co/ä?b#c'],
      { invalid_string: ['a.co', 'javascript:alert(1)', 'https://', 'https://a b', 'ftp://a.co', '//a.co'] },
    ],
    [
      { type: 'phone' },
      ['+41 44 123 45 67', '(030) 12-34/5', '112'],
      { invalid_string: ['12', 'call me', '+', '1+2345', '1'.repeat(21)], invalid_type: [112] },
    ],
    [
      { type: 'number' },
      [0, -1.5, 1e308, -0],
      { invalid_type: ['1', true, [1], Number.NaN, Number.POSITIVE_INFINITY] },
    ],
    [
      { type: 'number', min: 1, max: 2, step: 0.1 },
      [1, 1.1, 1.3, 1.7, 2],
      { too_small: [0.9], too_big: [2.1], not_multiple_of: [1.15] },
    ],
    [{ type: 'number', step: 3 }, [0, 3, -6], { not_multiple_of: [1, 2.9999999] }],
    [{ type: 'boolean' }, [true, false], { invalid_type: ['true', 1, 'on'] }],
    [{ type: 'checkbox' }, [true, false], { invalid_type: ['on'] }],
    [{ type: 'checkbox', required: true }, [true], { custom: [false], invalid_type: ['on'] }],
    [
      { type: 'date' },
      ['2026-02-28', '2024-02-29', '2000-02-29'],
      {
        invalid_date: [
          '2026-02-29',
          '1900-02-29',
          '2026-13-01',
          '2026-00-10',
          '2026-04-31',
          '26-01-01',
          '2026-1-1',
          '2026-01-01T00:00:00Z',
        ],
        invalid_type: [20260101],
      },
    ],
    [
      { type: 'date', min: '2026-01-02', max: '2026-01-03' },
      ['2026-01-02', '2026-01-03'],
      { too_small: ['2026-01-01'], too_big: ['2026-01-04'] },
    ],
    [
      { type: 'time' },
      ['00:00', '23:59:59'],
      { invalid_date: ['24:00', '12:60', '1:00', '12:00:60', '12:00Z'] },
    ],
    [{ type: 'time', min: '09:00:00' }, ['09:00', '09:00:01'], { too_small: ['08:59:59'] }],
    [
      { type: 'datetime' },
      ['2026-01-01T00:00:00Z', '2026-01-01T00:00+14:00', '2026-01-01T00:00:00.123456-01:30'],
      {
        invalid_date: [
          '2026-01-01',
          '2026-01-01T00:00:00',
          '2026-02-30T00:00:00Z',
          '2026-01-01 00:00:00Z',
          '2026-01-01T00:00:00+0100',
          '2026-01-01T24:00:00Z',
        ],
      },
    ],
    [
      { type: 'datetime', max: '2026-01-01T00:00:00Z' },
      ['2026-01-01T01:00:00+01:00'],
      { too_big: ['2025-12-31T23:30:00-01:00'] },
    ],
    [
      { type: 'select', options: options('a', 'b') },
      ['a'],
      { invalid_enum_value: ['c', 'A', 'constructor'], invalid_type: [['a'], 1] },
    ],
    [{ type: 'radio', options: options('a') }, ['a'], { invalid_enum_value: ['c'] }],
    [
      { type: 'multi_select', options: options('a', 'b', 'c'), minItems: 2, maxItems: 2 },
      [['a', 'c']],
      { too_small: [['a']], too_big: [['a', 'b', 'c']], invalid_type: ['a', { 0: 'a' }] },
    ],
    [
      { type: 'hidden' },
      ['x', 1, true, false],
      { invalid_type: [{}, ['x']], invalid_string: ['\0'], too_big: ['x'.repeat(10_001)] },
    ],
    [{ type: 'file' }, [upload], { invalid_type: ['upl_1', [upload]] }],
    [
      { type: 'file', maxFiles: 2 },
      [[upload], [upload, upload]],
      { invalid_type: [upload], too_big: [[upload, upload, upload]] },
    ],
  ])('%j', (attributes, good, bad) => {
    const form = givenForm({ id: 'a', ...attributes });

    for (const answer of good) {
      expect(form.checkAnswers({ a: answer })).toEqual({ ok: true, answers: { a: answer } });
    }
    for (const [code, answers] of Object.entries(bad)) {
      for (const answer of answers)
        expect([answer, refusals(form, { a: answer })]).toEqual([answer, [`answers.a ${code}`]]);
    }
  });

  it('names the choice, or the part of a file, that is wrong', () => {
    const form = givenForm(
      { id: 'tags', type: 'multi_select', options: options('a', 'b', 'c') },
      { id: 'cv', type: 'file' },
      { id: 'more', type: 'file', maxFiles: 2 },
    );

    expect(
      refusals(form, {
        tags: ['a', 'x', 'a', 1],
        cv: { upload_id: 'upl_1', url: 'x' },
        more: [upload, {}],
      }),
    ).toEqual([
      'answers.tags too_big',
      'answers.tags.1 invalid_enum_value',
      'answers.tags.2 custom',
      'answers.tags.3 invalid_type',
      'answers.cv.upload_id invalid_string',
      'answers.cv.url unrecognized_keys',
      'answers.more.1.upload_id invalid_type',
    ]);
  });

  it("says the form's own words when its pattern refuses", () => {
    const form = givenForm({
      id: 'a',
      type: 'text',
      pattern: '\\d{4}',
      patternMessage: 'Four digits, please',
    });

    expect(form.checkAnswers({ a: 'x' })).toEqual({
      ok: false,
      violations: [{ path: 'answers.a', code: 'invalid_string', message: 'Four digits, please' }],
    });
  });
});

describe('checkAnswers', () => {
  it('names every refused answer at once, in the order of the fields, then unknown ones', () => {
    const form = givenForm(
      { id: 'email', type: 'email', required: true },
      { id: 'age', type: 'number', required: true },
      { id: 'note', type: 'text' },
    );

    const result = form.checkAnswers({ phone: '1', note: 3, age: 'old', '\ud800': 1 });

    expect(result).toEqual({
      ok: false,
      violations: [
        { path: 'answers.email', code: 'invalid_type', message: 'Required' },
        { path: 'answers.age', code: 'invalid_type', message: 'Expected number, received string' },
        { path: 'answers.note', code: 'invalid_type', message: 'Expected string, received number' },
        { path: 'answers.phone', code: 'unrecognized_keys', message: 'Unknown property `phone`' },
        { path: 'answers.\ufffd', code: 'unrecognized_keys', message: 'Unknown property `\ufffd`' },
      ],
    });
  });

  it('suggests the field that an unknown answer may be for', () => {
    const form = givenForm({ id: 'email', type: 'email' });

    const result = form.checkAnswers({ emial: 'jo@example.com' });

    expect(result).toEqual({
      ok: false,
      violations: [
        {
          path: 'answers.emial',
          code: 'unrecognized_keys',
          message: 'Unknown property `emial`. Did you mean `email`?',
        },
      ],
    });
  });

  it('gives answers back in the order of the fields, without the empty ones', () => {
    const form = givenForm(
      { id: 'a', type: 'text' },
      { id: 'b', type: 'text' },
      { id: 'c', type: 'multi_select', options: options('x') },
      { id: 'd', type: 'number' },
      { id: 'e', type: 'boolean' },
    );

    const result = form.checkAnswers({ e: false, d: 0, c: [], b: '', a: 'x' });

    expect(JSON.stringify(result)).toBe('{"ok":true,"answers":{"a":"x","d":0,"e":false}}');
  });

  it.each([
    ['null', null],
    ['an empty text', ''],
    ['an empty list', []],
  ])('takes %s for no answer', (_, empty) => {
    const form = givenForm({ id: 'a', type: 'text', required: true });

    expect(refusals(form, { a: empty })).toEqual(['answers.a invalid_type']);
  });

  it('fills in the default where no answer is given, and a list of its own each time', () => {
    const form = givenForm(
      { id: 'a', type: 'text', required: true, defaultValue: 'x' },
      { id: 'b', type: 'multi_select', options: options('x', 'y'), defaultValue: ['x'] },
    );

    const first = form.checkAnswers({ a: '' });
    if (first.ok) (first.answers.b as string[]).push('y');

    expect(form.checkAnswers({})).toEqual({ ok: true, answers: { a: 'x', b: ['x'] } });
    expect(form.checkAnswers({ a: 'y' })).toEqual({ ok: true, answers: { a: 'y', b: ['x'] } });
  });

  it('drops answers to fields that are not visible, and never requires them', () => {
    const form = givenForm(
      { id: 'kind', type: 'select', options: options('person', 'company') },
      { id: 'vat', type: 'text', required: true, visibleWhen: { field: 'kind', op: 'eq', value: 'company' } },
      { id: 'country', type: 'text', defaultValue: 'CH', visibleWhen: { field: 'vat', op: 'notEmpty' } },
    );

    expect(form.checkAnswers({ kind: 'person', vat: 42, country: 'DE' })).toEqual({
      ok: true,
      answers: { kind: 'person' },
    });
    expect(refusals(form, { kind: 'company' })).toEqual(['answers.vat invalid_type']);
    expect(form.checkAnswers({ kind: 'company', vat: '1' })).toEqual({
      ok: true,
      answers: { kind: 'company', vat: '1', country: 'CH' },
    });
  });

  it('lets defaults decide what is visible', () => {
    const form = givenForm(
      { id: 'plan', type: 'hidden', defaultValue: 'pro' },
      { id: 'seats', type: 'number', required: true, visibleWhen: { field: 'plan', op: 'eq', value: 'pro' } },
    );

    expect(refusals(form, {})).toEqual(['answers.seats invalid_type']);
    expect(refusals(form, { plan: 'free' })).toEqual([]);
  });

  it.each([
    ['nothing', undefined, 'Required'],
    ['null', null, 'Expected object, received null'],
    ['a list', [], 'Expected object, received array'],
    ['a text', 'a', 'Expected object, received string'],
  ])('refuses %s as answers', (_, answers, message) => {
    const result = givenForm({ id: 'a', type: 'text' }).checkAnswers(answers);

    expect(result).toEqual({ ok: false, violations: [{ path: 'answers', code: 'invalid_type', message }] });
  });

  it('bears fields and answers named like prototypes', () => {
    const form = givenForm(
      { id: 'constructor', type: 'text' },
      { id: 'toString', type: 'text', required: true },
    );

    expect(refusals(form, {})).toEqual(['answers.toString invalid_type']);
    expect(refusals(form, JSON.parse('{"toString":"x","__proto__":{"constructor":1},"valueOf":1}'))).toEqual([
      'answers.__proto__ unrecognized_keys',
      'answers.valueOf unrecognized_keys',
    ]);
    expect(form.checkAnswers({ constructor: 'a', toString: 'b' })).toMatchObject({
      ok: true,
      answers: { constructor: 'a', toString: 'b' },
    });
  });

  it('answers fifty thousand unknown names with a list that can be read', () => {
    const many = Object.fromEntries(Array.from({ length: 50_000 }, (_, n) => [`k${n}`, n]));

    expect(refusals(givenForm({ id: 'a', type: 'text' }), many)).toHaveLength(100);
  });
});

describe('partial answers and prefill', () => {
  const form = () =>
    givenForm(
      { id: 'a', type: 'text', required: true, defaultValue: 'x' },
      { id: 'b', type: 'number', visibleWhen: { field: 'a', op: 'eq', value: 'never' } },
      { id: 'c', type: 'email', required: true },
    );

  it('checks each by itself: requires, fills in and drops nothing', () => {
    expect(form().checkAnswers({ b: 1 }, { required: false })).toEqual({ ok: true, answers: { b: 1 } });
  });

  it('keeps an empty answer as null, to clear what lies below', () => {
    expect(form().checkAnswers({ c: '', a: [] }, { required: false })).toEqual({
      ok: true,
      answers: { a: null, c: null },
    });
  });

  it('names problems below the root that is asked for', () => {
    expect(refusals(form(), { c: 'x', d: 1 }, { required: false, root: 'prefill' })).toEqual([
      'prefill.c invalid_string',
      'prefill.d unrecognized_keys',
    ]);
  });
});

describe('the answers of a session', () => {
  const form = () =>
    givenForm(
      { id: 'a', type: 'text', defaultValue: 'default' },
      { id: 'b', type: 'text', required: true },
      { id: 'c', type: 'text' },
    );

  it('lie over partial answers over prefill over defaults', () => {
    const base = mergeAnswers({ b: 'prefill', c: 'prefill' }, { c: 'partial' });

    expect(form().checkAnswers({}, { base })).toEqual({
      ok: true,
      answers: { a: 'default', b: 'prefill', c: 'partial' },
    });
    expect(form().checkAnswers({ a: '1', c: '3' }, { base })).toEqual({
      ok: true,
      answers: { a: '1', b: 'prefill', c: '3' },
    });
  });

  it('clear what lies below them when they are empty', () => {
    const base = { b: 'prefill', c: 'partial' };

    expect(form().checkAnswers({ a: '', c: null }, { base })).toEqual({
      ok: true,
      answers: { b: 'prefill' },
    });
    expect(refusals(form(), { b: '' }, { base })).toEqual(['answers.b invalid_type']);
  });

  it('are cleared by an empty partial answer, too', () => {
    const base = mergeAnswers({ b: 'prefill', c: 'prefill' }, { a: null, c: null });

    expect(form().checkAnswers({}, { base })).toEqual({ ok: true, answers: { b: 'prefill' } });
  });
});
