import { describe, expect, it } from 'vitest';
import { answersInWords } from '../../../src/domain/answers/answer-texts.ts';
import type { FormDefinition } from '../../../src/domain/definition/definition.ts';

const common = { required: false, hidden: false, answeredBy: 'anyone' as const, page: 1 };
const options = [
  { label: 'Red wine', value: 'red' },
  { label: 'White wine', value: 'white' },
];

const definition: FormDefinition = {
  name: 'Order',
  slug: 'order',
  fields: [
    { ...common, id: 'wines', type: 'multi_select', label: 'Wines', options },
    { ...common, id: 'wine', type: 'select', label: 'Wine', options },
    { ...common, id: 'terms', type: 'checkbox', label: 'Terms' },
    { ...common, id: 'count', type: 'number', label: 'Count' },
    { ...common, id: 'cv', type: 'file', label: 'CV' },
    { ...common, id: 'day', type: 'date', label: 'Day' },
    { ...common, id: 'at', type: 'time', label: 'At' },
    { ...common, id: 'call', type: 'datetime', label: 'Call' },
    { ...common, id: 'note', type: 'text', label: 'Note' },
    { ...common, id: 'ref', type: 'hidden', label: 'Ref', hidden: true },
  ],
  delivery: { type: 'email' },
  settings: {
    allowPartial: false,
    allowedOrigins: [],
    embedOrigins: [],
    publicPage: true,
    review: false,
    locale: 'de-AT',
    theme: { mode: 'auto' },
    spam: {},
  },
};

describe('answersInWords', () => {
  it('reads as people would write it, in the order of the fields', () => {
    const answers = {
      ref: 'x',
      cv: { upload_id: 'upl_1', filename: 'cv.pdf' },
      count: 0,
      day: '2026-12-24',
      at: '09:05',
      call: '2026-12-24T23:30:00+02:00',
      terms: true,
      wine: 'red',
      wines: ['white', 'red'],
    };

    const words = answersInWords(definition, answers).map(({ label, text }) => [label, text]);

    expect(words).toEqual([
      ['Wines', 'White wine, Red wine'],
      ['Wine', 'Red wine'],
      ['Terms', 'Ja'],
      ['Count', '0'],
      ['CV', 'cv.pdf'],
      ['Day', '24. Dezember 2026'],
      ['At', '09:05'],
      ['Call', '24. Dezember 2026 um 21:30 UTC'],
    ]);
    expect(answersInWords(definition, answers, { hiddenToo: true }).at(-1)?.text).toBe('x');
  });

  it('are in the first language of the reader that there are words for, if the form has none', () => {
    const { locale: _, ...settings } = definition.settings;
    const answers = { terms: false, call: '2026-12-24T10:30:15Z' };
    const told = (preferred?: string[]) =>
      answersInWords({ ...definition, settings }, answers, preferred && { preferred }).map(
        ({ text }) => text,
      );

    expect(told(['nl', 'fr-CH', 'de'])).toEqual(['Non', '24 décembre 2026 à 10:30:15 UTC']);
    expect(told()).toEqual(['No', 'December 24, 2026 at 10:30:15 AM UTC']);
  });
});
