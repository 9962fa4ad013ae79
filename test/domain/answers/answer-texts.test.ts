import { describe, expect, it } from 'vitest';
import { foreignPost, namedInputs, readInputs } from '../../../src/domain/answers/answer-texts.ts';
import { compileForm } from '../../../src/domain/answers/answers.ts';
import { givenDefinition, options } from '../given.ts';

const read = (field: object, ...values: string[]) =>
  readInputs(givenDefinition({ fields: [{ id: 'a', ...field }] }), [{ name: 'a', values }]).a;

describe('readInputs', () => {
  it.each([
    ['number', { type: 'number' }, [' 1.50 '], 1.5],
    ['number', { type: 'number' }, ['-1e3'], -1000],
    ['number', { type: 'number' }, ['0x10'], '0x10'],
    ['number', { type: 'number' }, ['1,5'], '1,5'],
    ['number', { type: 'number' }, ['1e999'], '1e999'],
    ['number', { type: 'number' }, ['7.'], 7],
    ['number', { type: 'number' }, ['+.5e-3'], 0.0005],
    ['number', { type: 'number' }, ['Infinity'], 'Infinity'],
    ['number', { type: 'number' }, [''], ''],
    ['checkbox', { type: 'checkbox' }, ['on'], true],
    ['checkbox', { type: 'checkbox' }, ['0', '1'], true],
    ['boolean', { type: 'boolean' }, ['TRUE'], true],
    ['boolean', { type: 'boolean' }, ['false'], false],
    ['boolean', { type: 'boolean' }, ['maybe'], 'maybe'],
    ['text', { type: 'text' }, ['first', 'last'], 'last'],
    ['textarea', { type: 'textarea' }, ['a\r\nb\rc'], 'a\nb\nc'],
    ['hidden', { type: 'hidden' }, ['1'], '1'],
    ['url', { type: 'url' }, [' example.com '], 'https://example.com'],
    ['url', { type: 'url' }, ['shop.example.co.uk:8080/a?b#c'], 'https://shop.example.co.uk:8080/a?b#c'],
    ['url', { type: 'url' }, ['http://example.com'], 'http://example.com'],
    ['url', { type: 'url' }, ['javascript:alert(1).js'], 'javascript:alert(1).js'],
    ['url', { type: 'url' }, ['a@example.com'], 'a@example.com'],
    ['url', { type: 'url' }, ['example'], 'example'],
    ['date', { type: 'date' }, ['2026-01-01'], '2026-01-01'],
    ['datetime', { type: 'datetime' }, ['2026-01-01T10:00'], '2026-01-01T10:00Z'],
    ['datetime', { type: 'datetime' }, ['2026-01-01T10:00+02:00'], '2026-01-01T10:00+02:00'],
    ['multi_select', { type: 'multi_select', options: options('x', 'y') }, ['', 'x', 'y'], ['x', 'y']],
    ['multi_select', { type: 'multi_select', options: options('x') }, [''], []],
    ['file', { type: 'file' }, ['upl_1'], { upload_id: 'upl_1' }],
    ['file', { type: 'file' }, [''], null],
    [
      'file',
      { type: 'file', maxFiles: 2 },
      ['upl_1', 'upl_2'],
      [{ upload_id: 'upl_1' }, { upload_id: 'upl_2' }],
    ],
  ])('reads a %s (%j) from %j', (_, field, values, answer) => {
    expect(read(field, ...values)).toEqual(answer);
  });

  it('reads every number that is written out exactly, and nothing that is longer', () => {
    const least = `-0.${'0'.repeat(323)}${'5'.padEnd(751, '0')}`;
    const long = `${'0'.repeat(1_100)}7`;

    expect(least).toHaveLength(1_077);
    expect(read({ type: 'number' }, least)).toBe(-Number.MIN_VALUE);
    expect(read({ type: 'number' }, long.slice(1))).toBe(7);
    expect(['number', 'rating', 'scale'].map((type) => read({ type }, long))).toEqual([long, long, long]);
  });

  it('drops names that are no field, and what a human could not see', () => {
    const definition = givenDefinition({
      fields: [
        { id: 'a', type: 'text' },
        { id: 'b', type: 'hidden' },
        { id: 'c', type: 'text', hidden: true },
      ],
    });
    const inputs = ['a', 'b', 'c', 'd', '__proto__', '_next'].map((name) => ({ name, values: ['x'] }));

    expect(readInputs(definition, inputs)).toEqual({ a: 'x', b: 'x', c: 'x' });
    expect(readInputs(definition, inputs, { humanOnly: true })).toEqual({ a: 'x' });
  });

  it('leaves what it can’t read to be named by the check', () => {
    const definition = givenDefinition({ fields: [{ id: 'age', type: 'number' }] });

    const answers = readInputs(definition, [{ name: 'age', values: ['old'] }]);

    expect(compileForm(definition).checkAnswers(answers)).toMatchObject({
      violations: [{ path: 'answers.age', code: 'invalid_type' }],
    });
  });
});

describe('names as static sites write them', () => {
  const definition = givenDefinition({
    fields: [
      { id: 'topics', type: 'multi_select', options: options('a', 'b', 'c') },
      { id: 'home', type: 'address' },
      { id: 'Email', type: 'email' },
      { id: 'mail', type: 'text' },
      { id: 'MAIL', type: 'text' },
      { id: 'grid', type: 'matrix', rows: options('1', 'b'), options: options('x', 'y'), multiple: true },
      { id: 'color', type: 'radio', options: options('red'), allowOther: true },
    ],
  });
  const readAs = (...inputs: [name: string, ...values: string[]][]) =>
    readInputs(
      definition,
      inputs.map(([name, ...values]) => ({ name, values })),
    );

  it.each<[inputs: [name: string, ...values: string[]][], answers: object]>([
    [[['topics[]', 'a', 'b']], { topics: ['a', 'b'] }],
    [
      [
        ['topics[0]', 'a'],
        ['topics[1]', 'b'],
      ],
      { topics: ['a', 'b'] },
    ],
    [
      [
        ['topics', ''],
        ['topics[]', 'c'],
      ],
      { topics: ['c'] },
    ],
    [[['TOPICS[]', 'a']], { topics: ['a'] }],
    [
      [
        ['home[city]', 'Ghent'],
        ['home[Country]', 'BE'],
      ],
      { home: { city: 'Ghent', country: 'BE' } },
    ],
    [[['home.city', 'Ghent']], { home: { city: 'Ghent' } }],
    [[['email', 'a@example.com']], { Email: 'a@example.com' }],
    [[['EMAIL[]', 'a@example.com']], { Email: 'a@example.com' }],
    [
      [
        ['Email', 'a@example.com'],
        ['email', 'b@example.com'],
      ],
      { Email: 'a@example.com' },
    ],
    [
      [
        ['mail', 'x'],
        ['Mail', 'y'],
      ],
      { mail: 'x' },
    ],
    [
      [
        ['grid[1][]', 'x', 'y'],
        ['grid[b]', 'x'],
      ],
      { grid: { 1: ['x', 'y'], b: ['x'] } },
    ],
    [[['color[other]', 'green']], { color: 'green' }],
    [
      [
        ['topics[x]', 'a'],
        ['[topics]', 'a'],
        ['topics]', 'a'],
        ['topics[][]', 'a'],
      ],
      {},
    ],
    [
      [
        ['__proto__', 'a'],
        ['constructor', 'a'],
        ['toString[]', 'a'],
      ],
      {},
    ],
  ])('are read: %j is %j', (inputs, answers) => {
    expect(readAs(...inputs)).toEqual(answers);
  });

  it('that no field has are named', () => {
    const inputs = ['Mail', 'topics[]', 'submit', 'home[planet]'].map((name) => ({ name, values: ['a'] }));

    expect(namedInputs(definition.fields, inputs).unknown).toEqual(['Mail', 'submit', 'home[planet]']);
  });

  it('refuse a post where none is a field’s, if browsers always send one', () => {
    const asks = (...fields: object[]) => givenDefinition({ fields });
    const boxes = asks(
      { id: 'terms', type: 'checkbox' },
      { id: 'pick', type: 'radio', options: options('a') },
      { id: 'cv', type: 'file' },
      { id: 'stars', type: 'rating' },
      { id: 'from', type: 'hidden' },
      { id: 'agent', type: 'text', answeredBy: 'agent' },
    );
    const texts = asks({ id: 'terms', type: 'checkbox' }, { id: 'email', type: 'email' });
    const names = [...Array(25).keys()].map((index) => `<b>\n"${index}${'x'.repeat(100)}`);

    const [violation] = foreignPost(texts, names);

    expect(foreignPost(boxes, ['a'])).toEqual([]);
    expect(violation).toMatchObject({ path: 'answers', code: 'unrecognized_keys' });
    expect(violation?.message).toMatch(/none of the form’s fields `terms`, `email`, but `<b>.*…$/);
    expect(violation?.message.match(/x+/g)).toHaveLength(20);
    expect(violation?.message).not.toMatch(/x{64}|\n|24/);
    expect(foreignPost(texts, [])).toMatchObject([{ message: expect.stringMatching(/`terms`, `email`$/) }]);
  });

  it('are read in a time that grows with their length alone', () => {
    const names = ['['.repeat(100_000), `${'[a'.repeat(50_000)}]`, `topics${'[]'.repeat(50_000)}`];

    expect(
      namedInputs(
        definition.fields,
        names.map((name) => ({ name, values: ['a'] })),
      ).unknown,
    ).toEqual(names);
  });
});
