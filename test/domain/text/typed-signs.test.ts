import { describe, expect, it } from 'vitest';
import { asciiAddress } from '../../../src/domain/addresses/ascii-address.ts';
import { isEmailAddress } from '../../../src/domain/addresses/email-address.ts';
import { readableAddress } from '../../../src/domain/addresses/readable-address.ts';
import { soughtValue } from '../../../src/domain/answers/answer-texts.ts';
import { SAYS_SOMETHING } from '../../../src/domain/fields/text.ts';
import { foldPhone, inNfc, isBlank, isInvisible, plainSigns } from '../../../src/domain/text/typed-signs.ts';
import { givenForm, options } from '../given.ts';

const number = '+49 (30) 901820-12';

describe('a telephone number', () => {
  it.each([
    number,
    ` ${number}`,
    number.replaceAll(' ', '\u00a0'),
    number.replaceAll(' ', '\u202f'),
    number.replaceAll(' ', '\u3000'),
    `\u202a${number}\u202c`,
    `\u2066${number}\u2069\ufeff`,
    number.replace('30', '3\u200b0'),
    ...['\u2010', '\u2011', '\u2012', '\u2013', '\u2014', '\u2212', '\uff0d', '\u30fc'].map((dash) =>
      number.replace('-', dash),
    ),
    '＋４９ （３０） ９０１８２０－１２',
    '+٤٩ (٣٠) ٩٠١٨٢٠-١٢',
    '+۴۹ (۳۰) ۹۰۱۸۲۰-۱۲',
  ])('is stored as typed, in ASCII: %j', (pasted) => {
    const form = givenForm({ id: 'it', type: 'phone', pattern: '[-+0-9() ]+', maxLength: number.length });

    expect(form.checkAnswers({ it: pasted })).toEqual({ ok: true, answers: { it: number } });
    expect(form.checkPosted({ it: pasted }, {}).fitting).toEqual({ it: number });
    expect(soughtValue(pasted).texts).toContain(number);
  });

  it.each([
    '030 1234567 ext. 12',
    '030 1234567 ext 12',
    '030 1234567 extension 12',
    '030 1234567, ext.: 12'.replace(':', ''),
    '030 1234567x12',
    '030 1234567 x12',
    '030 1234567 X 12',
    '030 1234567;ext=12',
    '030 1234567 ｘ１２',
  ])('keeps its extension: %s', (pasted) => {
    const form = givenForm({ id: 'it', type: 'phone' });

    expect(form.checkAnswers({ it: pasted })).toEqual({ ok: true, answers: { it: '030 1234567;ext=12' } });
  });

  it.each([
    '12',
    'x12',
    '030 1234567 ext',
    '030 1234567;ext=12345678901',
    '030;ext=1;ext=2',
    'a'.repeat(300),
  ])('is refused if it is none: %s', (text) => {
    expect(givenForm({ id: 'it', type: 'phone' }).checkAnswers({ it: text }).ok).toBe(false);
  });

  it('is what conditions see', () => {
    const visibleWhen = { field: 'it', op: 'eq', value: '030 12' };
    const form = givenForm(
      { id: 'it', type: 'phone' },
      { id: 'b', type: 'text', required: true, visibleWhen },
    );

    expect(form.checkAnswers({ it: '030\u00a012' })).toMatchObject({
      ok: false,
      violations: [{ path: 'answers.b' }],
    });
  });
});

describe('a domain', () => {
  it.each([
    ['ada@münchen.de', 'ada@xn--mnchen-3ya.de'],
    ['  ada@example.com\u00a0', 'ada@example.com'],
    ['ada@MÜNCHEN.de', 'ada@xn--mnchen-3ya.de'],
    ['ada@mu\u0308nchen.de', 'ada@xn--mnchen-3ya.de'],
    ['ada@例え。テスト', 'ada@xn--r8jz45g.xn--zckzah'],
    ['ada@faß.de', 'ada@xn--fa-hia.de'],
    ['Ada.B+c@Example.COM', 'Ada.B+c@Example.COM'],
  ])('of an email address is stored in ASCII: %s', (typed, stored) => {
    expect(asciiAddress(typed)).toBe(stored);
    expect(asciiAddress(stored)).toBe(stored);
    expect(isEmailAddress(stored)).toBe(true);
    expect(givenForm({ id: 'it', type: 'email' }).checkAnswers({ it: typed })).toEqual({
      ok: true,
      answers: { it: stored },
    });
  });

  it.each([
    'ada@mün chen.de',
    'ada@mün/chen.de',
    'ädä@example.com',
    'ada@münchen',
    'a@b@c ü.de',
    'ada@１２７.1',
  ])('is none in %s', (text) => {
    expect(givenForm({ id: 'it', type: 'email' }).checkAnswers({ it: text }).ok).toBe(false);
  });

  it('of a web address is stored in ASCII, and the rest as typed', () => {
    const typed = ' https://Ada@bücher.example:8080/Straße?q=ü#ö ';

    expect(asciiAddress(typed)).toBe('https://Ada@xn--bcher-kva.example:8080/Straße?q=ü#ö');
    expect(givenForm({ id: 'it', type: 'url' }).checkAnswers({ it: typed })).toMatchObject({ ok: true });
  });

  it.each([
    ['ada@xn--mnchen-3ya.de', 'ada@münchen.de'],
    ['https://xn--bcher-kva.example/a?b', 'https://bücher.example/a?b'],
    ['ada@xn--r8jz45g.xn--zckzah', 'ada@例え.テスト'],
    // A Cyrillic "а" among Latin letters.
    ['ada@xn--pple-43d.com', 'ada@xn--pple-43d.com'],
    ['ada@xn--invalid-.com', 'ada@xn--invalid-.com'],
    ['ada@example.com', 'ada@example.com'],
    ['nothing', 'nothing'],
  ])('is read in its own script, if it can be told from others: %s', (stored, shown) => {
    expect(readableAddress(stored)).toBe(shown);
  });
});

const unseen = [
  '\u200b',
  '\u00ad\u200d',
  '\u3164',
  '\uffa0',
  '\u2800',
  '\ufeff',
  '\u2060\u180e',
  '\u{e0020}',
];

describe('what nobody can see', () => {
  it.each(unseen)('is no answer: %j', (text) => {
    const parts = { line1: text, line2: text, city: text, region: text, postal_code: text, country: text };
    const given = { it: text, s: { text }, home: parts, b: text };
    const types = ['text', 'textarea', 'email', 'url', 'phone', 'hidden'];
    const named = types.map((type) =>
      givenForm({ id: 'it', type, required: true }).checkAnswers({ it: text }),
    );
    const form = givenForm(
      { id: 'it', type: 'text' },
      { id: 'b', type: 'text', required: true, visibleWhen: { field: 'it', op: 'notEmpty' } },
    );

    expect(named).toEqual(
      types.map(() => ({
        ok: false,
        violations: [{ path: 'answers.it', code: 'invalid_type', message: 'Required' }],
      })),
    );
    expect(form.checkAnswers({ it: text, b: text })).toEqual({ ok: true, answers: {} });
    expect(form.checkAnswers({ it: text }, { required: false })).toEqual({ ok: true, answers: { it: null } });
    expect(givenForm({ id: 's', type: 'signature' }).checkAnswers({ s: given.s }).ok).toBe(false);
    expect(givenForm({ id: 'home', type: 'address' }).checkAnswers({ home: parts }).ok).toBe(false);
    expect([isInvisible(text), isBlank(` ${text}\n`), isInvisible(`a${text}`), isBlank(`a${text}`)]).toEqual([
      true,
      true,
      false,
      false,
    ]);
  });

  it('says nothing by the schema of a required text, either', () => {
    const saysSomething = new RegExp(SAYS_SOMETHING);
    const signs = Array.from({ length: 0x10000 }, (_, code) => String.fromCharCode(code));

    expect(signs.filter((sign) => saysSomething.test(sign) === isBlank(sign))).toEqual([]);
  });

  it('stays within an answer that says something', () => {
    const text = 'a\u200d\u00adb';

    expect(givenForm({ id: 'it', type: 'text' }).checkAnswers({ it: text })).toEqual({
      ok: true,
      answers: { it: text },
    });
  });
});

describe('texts in other normal forms of Unicode', () => {
  const forms = (text: string) => [text.normalize('NFC'), text.normalize('NFD')];

  it('match patterns, fulfil conditions and are options, and are stored as they came', () => {
    for (const author of forms('Café'))
      for (const typed of forms('Café')) {
        const visibleWhen = { field: 'it', op: 'eq', value: author };
        const form = givenForm(
          { id: 'it', type: 'text', pattern: `${author}|x` },
          { id: 'b', type: 'text', required: true, visibleWhen },
          {
            id: 'c',
            type: 'text',
            required: true,
            visibleWhen: { field: 'it', op: 'contains', value: author.slice(2) },
          },
          { id: 'd', type: 'text', required: true, visibleWhen: { field: 'it', op: 'in', value: [author] } },
          { id: 'e', type: 'radio', options: options(author) },
          { id: 'f', type: 'multi_select', options: options(author) },
        );

        expect(form.checkAnswers({ it: typed, b: 'b', c: 'c', d: 'd', e: typed, f: [typed] })).toEqual({
          ok: true,
          answers: { it: typed, b: 'b', c: 'c', d: 'd', e: author, f: [author] },
        });
      }
  });

  it('are left as they are where sorting their marks would take long', () => {
    const long = `a${'\u0316\u0301'.repeat(50_000)}`;

    expect(inNfc(long)).toBe(long);
    expect(inNfc('e\u0301')).toBe('\u00e9');
  });
});

it('plain signs are left alone, and what is folded once stays', () => {
  const texts = ['plain - text 1', '١٢٣', '－１', '\u{1d7d8}\u{1d7e3}', 'a\u3000b'];

  expect(texts.map(plainSigns)).toEqual(['plain - text 1', '123', '-1', '01', 'a b']);
  expect(texts.map(plainSigns).map(plainSigns)).toEqual(texts.map(plainSigns));
  expect(foldPhone(foldPhone('030 12 x3'))).toBe(foldPhone('030 12 x3'));
});
