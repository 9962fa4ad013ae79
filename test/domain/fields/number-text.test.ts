import { describe, expect, it } from 'vitest';
import { marksOf, numberText, readings, readNumber } from '../../../src/domain/fields/number-text.ts';

const languages = (
  'en en-GB en-IN en-ZA de de-AT de-CH fr fr-CA fr-CH es es-MX pt pt-PT ja zh ar ar-EG ar-MA fa ur hi bn mr my ne dz it ' +
  'nl pl cs sv nb fi ru uk bg tr el he ko vi th id'
).split(' ');
const values = [
  0, 1, -1, 1.5, -0.25, 12.345, 999, 1500, -1500.5, 12_345, 123_456.75, 1_234_567.5, 987_654_321,
];

describe.each(languages)('a number in the language %s', (language) => {
  const format = (options: Intl.NumberFormatOptions) =>
    new Intl.NumberFormat(language, { maximumFractionDigits: 20, ...options });
  const forms = [
    format({ useGrouping: 'always' }),
    format({ useGrouping: false }),
    format({}),
    format({ useGrouping: 'always', numberingSystem: 'latn' }),
  ];

  it('is read as the language writes it, in groups or not, in its own digits or in ASCII', () => {
    const written = forms.flatMap((form) => values.map((value) => [form.format(value), value] as const));

    expect(written.map(([text]) => [text, readNumber(text, language)])).toEqual(written);
    expect(written.map(([text]) => readNumber(` ${text}\u200f `, language))).toEqual(
      written.map(([, value]) => value),
    );
  });

  it('is shown so that it is read again', () => {
    const all = [...values, 1e21, -1e-7, 5e-324, Number.MAX_SAFE_INTEGER, 0.1 + 0.2];

    expect(all.map((value) => readNumber(numberText(value, language), language))).toEqual(all);
  });

  it('is refused where its groups are no groups, or a mark comes twice', () => {
    const { decimal = '', group = '' } = marksOf(language) ?? {};
    const wrong = [
      `1${decimal}5${decimal}5`,
      `1${group}5`,
      `1${group}5000${group}000`,
      `0${group}500`,
      `1${group}${group}500`,
      `1${decimal}500${group}000`,
    ];

    const refused = wrong.filter((text) => typeof readNumber(text, language) === 'number');
    expect(refused).toEqual([]);
  });
});

it.each([
  ['de', '1.500', 1500],
  ['de', '1.234.567,5', 1_234_567.5],
  ['de', '3,5', 3.5],
  ['de', '1 500,5', 1500.5],
  ['de', '−2,5', -2.5],
  ['de', ',5', 0.5],
  ['de', '5,', 5],
  ['de', '1,5e3', 1500],
  ['en', '1,500', 1500],
  ['en', '1.500', 1.5],
  ['en', '1\u202f500', 1500],
  ['en-IN', '12,34,567.5', 1_234_567.5],
  ['hi', '१२,३४,५६७.५', 1_234_567.5],
  ['de-CH', "1'500.5", 1500.5],
  ['de-CH', '1’500', 1500],
  ['fr', '3.5', 3.5],
  ['fr', '1.234.567', 1_234_567],
  ['fr', '0.500', 0.5],
  ['ja', '１，５００．５', 1500.5],
  ['ar', '١٬٢٣٤٫٥', 1234.5],
  ['ar', '١٢', 12],
  ['fa', '\u200e−۱٫۵', -1.5],
  ['sv', '1 500', 1500],
  ['', '1.500', 1.5],
])('in the language "%s" %s is %d', (language, text, number) => {
  expect(readNumber(text, language)).toBe(number);
});

it.each([
  ['de', '1.5', [1.5, 15]],
  ['de', '1.50', [1.5, 150]],
  ['de', '12.3456', [12.3456, 123_456]],
  ['de', '0.500', [0.5, 500]],
  ['en', '1,5', [1.5, 15]],
  ['en', '1.234.567', [1_234_567]],
  ['en', '12,34,567', [1_234_567]],
  ['fr', '1.500', [1.5, 1500]],
  ['fr', '1,234.5', [1234.5]],
  ['de', '1,2,3', [123]],
  ['de', 'x', []],
  ['de', '1²', []],
  ['de', '--1', []],
  ['de', '1 2.3', [12.3]],
  ['', '3,5', [3.5, 35]],
])('in the language "%s" %s is no number, and may mean %j', (language, text, meant) => {
  expect(readNumber(text, language)).toBe(text);
  expect(readings(text)).toEqual(meant);
});

it('reads digits of every script', () => {
  const systems = Intl.supportedValuesOf('numberingSystem').filter((system) =>
    /^\p{Nd}{10}$/u.test(
      new Intl.NumberFormat(`en-u-nu-${system}`, { useGrouping: false }).format(1_023_456_789),
    ),
  );
  const read = systems.map((system) =>
    readNumber(
      new Intl.NumberFormat(`en-u-nu-${system}`, { useGrouping: false }).format(1_023_456_789),
      'en',
    ),
  );

  expect(systems.length).toBeGreaterThan(50);
  expect(new Set(read)).toEqual(new Set([1_023_456_789]));
});

it('knows no marks for what is no language, or none that numbers are written in', () => {
  expect(['', 'x', 'de_DE', 'qqq', '../de', 'd'.repeat(400), 'de-x-'.padEnd(36, 'a')].map(marksOf)).toEqual(
    Array.from({ length: 7 }),
  );
});
