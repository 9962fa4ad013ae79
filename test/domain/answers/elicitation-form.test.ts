import { describe, expect, it } from 'vitest';
import { elicitationForm } from '../../../src/domain/answers/agent-schema.ts';
import { checkDefinition } from '../../../src/domain/definition/definition.ts';

describe('elicitationForm', () => {
  it('says texts, formats, numbers, booleans and choices with their labels', () => {
    const options = [
      { label: 'Small', value: 's' },
      { label: 'Large', value: 'l' },
    ];
    const form = formOf([
      { id: 'why', type: 'textarea', description: 'In short.', maxLength: 200 },
      { id: 'mail', type: 'email', required: true },
      { id: 'site', type: 'url' },
      { id: 'day', type: 'date' },
      { id: 'count', type: 'number', min: 1, max: 9, defaultValue: 2 },
      { id: 'stars', type: 'rating', max: 3 },
      { id: 'size', type: 'radio', options },
      { id: 'sizes', type: 'multi_select', options, maxItems: 1 },
    ]);
    const choices = [
      { const: 's', title: 'Small' },
      { const: 'l', title: 'Large' },
    ];

    expect(form).toMatchObject({
      type: 'object',
      properties: {
        why: { type: 'string', title: 'Why', description: 'In short.', maxLength: 200 },
        mail: { type: 'string', title: 'Mail', format: 'email' },
        site: { type: 'string', format: 'uri' },
        day: { type: 'string', format: 'date' },
        count: { type: 'number', minimum: 1, maximum: 9, default: 2 },
        stars: { type: 'integer', minimum: 1, maximum: 3 },
        size: { type: 'string', oneOf: choices },
        sizes: { type: 'array', items: { anyOf: choices }, maxItems: 1 },
      },
      required: ['mail'],
    });
    expect(JSON.stringify(form)).not.toMatch(/pattern|enum|uniqueItems/);
  });

  it('says as a hint what a client can ask for, but its schema has no word for', () => {
    const options = [{ label: 'Small', value: 's' }];
    const form = formOf([
      { id: 'whole', type: 'number', step: 1, min: 0 },
      { id: 'day', type: 'date', min: '2026-01-01', max: '2026-12-31' },
      { id: 'at', type: 'time', description: 'When?', min: '09:00' },
      { id: 'phone', type: 'phone' },
      { id: 'size', type: 'select', options, allowOther: true },
      { id: 'agreed', type: 'checkbox', required: true },
    ]);

    expect(form).toMatchObject({
      type: 'object',
      properties: {
        whole: { type: 'integer', title: 'Whole', minimum: 0 },
        day: { type: 'string', title: 'Day', format: 'date', description: '≥ 2026-01-01, ≤ 2026-12-31' },
        at: { type: 'string', title: 'At', description: 'When?\nhh:mm, ≥ 09:00' },
        phone: { type: 'string', title: 'Phone', description: '+1 555 0100' },
        size: { type: 'string', title: 'Size', description: 'Small / …' },
        agreed: { type: 'boolean', title: 'Agreed' },
      },
      required: ['agreed'],
    });
  });

  it.each<[string, object]>([
    ['a pattern', { type: 'text', pattern: 'a+' }],
    ['a phone number with a pattern', { type: 'phone', pattern: '\\+49.*' }],
    ['a step', { type: 'number', step: 0.5 }],
    [
      'other texts among several choices',
      { type: 'multi_select', options: [{ label: 'A', value: 'a' }], allowOther: true },
    ],
    ['an order', { type: 'ranking', options: ['a', 'b'].map((value) => ({ label: value, value })) }],
    ['an address', { type: 'address' }],
    ['a file', { type: 'file' }],
    ['a signature', { type: 'signature' }],
    ['something personal', { type: 'text', personal: true }],
    ['what only a person may answer', { type: 'text', answeredBy: 'human' }],
    ['what an agent must answer', { type: 'text', answeredBy: 'agent', required: true }],
  ])('leaves %s to the page', (_name, field) => {
    expect(
      formOf([
        { id: 'a', type: 'text' },
        { id: 'b', ...field },
      ]),
    ).toBeUndefined();
  });

  it('leaves nothing at all, and more than eight questions, to the page', () => {
    const texts = (count: number) =>
      Array.from({ length: count }, (_, index) => ({ id: `q${index}`, type: 'text' }));

    expect(formOf(texts(8))).toBeDefined();
    expect(formOf(texts(9))).toBeUndefined();
    expect(elicitationForm([])).toBeUndefined();
  });
});

function formOf(fields: object[]) {
  const input = { name: 'A', slug: 'a', fields, delivery: { type: 'email' } };
  const checked = checkDefinition(input, { keyless: false, allowPrivateUrls: false });
  if (!checked.ok) throw new Error(JSON.stringify(checked.violations));
  return elicitationForm(checked.definition.fields);
}
