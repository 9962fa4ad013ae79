import { describe, expect, it } from 'vitest';
import { compileForm } from '../../../src/domain/answers/answers.ts';
import { checkDefinition } from '../../../src/domain/definition/definition.ts';
import { warningsOf } from '../../../src/domain/definition/share.ts';
import type { JsonObject } from '../../../src/domain/json/json.ts';

const options = (...labels: string[]) =>
  labels.map((label) => ({ label, value: label.toLowerCase().replaceAll(/[^a-z0-9]+/g, '_') }));

/** Forms as people make them elsewhere, with answers that fit, and what of it no answer could be. */
const forms: RealForm[] = [
  {
    name: 'Conference registration',
    fields: [
      { id: 'name', type: 'text', required: true },
      { id: 'email', type: 'email', required: true },
      { id: 'ticket', type: 'radio', options: options('Full', 'Student', 'Speaker'), required: true },
      {
        id: 'university',
        type: 'text',
        required: true,
        visibleWhen: { field: 'ticket', op: 'eq', value: 'student' },
      },
      { id: 'days', type: 'multi_select', options: options('Mon', 'Tue', 'Wed'), minItems: 1 },
      { id: 'dinner', type: 'boolean', visibleWhen: { field: 'days', op: 'contains', value: 'tue' } },
      {
        id: 'diet',
        type: 'select',
        options: options('None', 'Vegan', 'Halal'),
        allowOther: true,
        visibleWhen: { field: 'dinner', op: 'eq', value: true },
      },
      { id: 'conduct', type: 'checkbox', required: true, label: 'I will follow the code of conduct' },
    ],
    answers: {
      name: 'Ada',
      email: 'ada@example.com',
      ticket: 'student',
      university: 'London',
      days: ['tue'],
      dinner: true,
      diet: 'No nuts',
      conduct: true,
    },
    never: { field: 'dinner', op: 'eq', value: 'Yes' },
  },
  {
    name: 'Customer satisfaction',
    fields: [
      { id: 'nps', type: 'scale', min: 0, max: 10, required: true, minLabel: 'Never', maxLabel: 'Always' },
      { id: 'why_low', type: 'textarea', visibleWhen: { field: 'nps', op: 'lte', value: 6 } },
      { id: 'why_high', type: 'textarea', visibleWhen: { field: 'nps', op: 'gte', value: 9 } },
      { id: 'may_quote', type: 'checkbox', visibleWhen: { field: 'why_high', op: 'notEmpty' } },
    ],
    answers: { nps: 9, why_high: 'It works', may_quote: true },
    never: { field: 'nps', op: 'gt', value: 10 },
  },
  {
    name: 'Job application',
    fields: [
      { id: 'name', type: 'text', required: true, maxLength: 100 },
      { id: 'phone', type: 'phone' },
      { id: 'portfolio', type: 'url' },
      { id: 'cv', type: 'file', accept: ['.pdf', 'application/msword', '.docx'], maxFiles: 2 },
      { id: 'years', type: 'number', min: 0, max: 60, step: 0.5, required: true },
      { id: 'lead', type: 'boolean', visibleWhen: { field: 'years', op: 'gte', value: 5 } },
      { id: 'start', type: 'date', min: '2026-01-01' },
      { id: 'notice', type: 'text', visibleWhen: { field: 'start', op: 'lt', value: '2026-03-01' } },
    ],
    answers: { name: 'Ada', years: 7.5, lead: true, start: '2026-02-01', notice: 'None' },
    never: { field: 'start', op: 'lt', value: '01.03.2026' },
  },
  {
    name: 'Patient intake',
    fields: [
      { id: 'born', type: 'date', required: true, max: '2026-12-31', personal: true },
      { id: 'guardian', type: 'text', visibleWhen: { field: 'born', op: 'gt', value: '2008-12-31' } },
      { id: 'address', type: 'address', required: true },
      { id: 'conditions', type: 'multi_select', options: options('Asthma', 'Diabetes', 'None of these') },
      {
        id: 'medication',
        type: 'textarea',
        required: true,
        visibleWhen: {
          all: [
            { field: 'conditions', op: 'notEmpty' },
            { not: { field: 'conditions', op: 'in', value: ['none_of_these'] } },
          ],
        },
      },
      { id: 'consent', type: 'signature', accept: ['typed'], required: true },
    ],
    answers: {
      born: '2010-05-01',
      guardian: 'Byron',
      address: { line1: '1 Road', city: 'London', country: 'GB' },
      conditions: ['asthma'],
      medication: 'Salbutamol',
      consent: { text: 'Byron' },
    },
    never: { field: 'conditions', op: 'eq', value: 'asthma' },
  },
  {
    name: 'Support request',
    fields: [
      { id: 'plan', type: 'hidden', defaultValue: 'free' },
      { id: 'topic', type: 'select', options: options('Billing', 'Bug', 'Other'), required: true },
      {
        id: 'invoice',
        type: 'text',
        pattern: 'INV-[0-9]{6}',
        visibleWhen: { field: 'topic', op: 'eq', value: 'billing' },
      },
      { id: 'urgent', type: 'checkbox', visibleWhen: { field: 'plan', op: 'ne', value: 'free' } },
      {
        id: 'shots',
        type: 'file',
        accept: ['image/*', 'video/mp4'],
        maxFiles: 5,
        visibleWhen: { field: 'topic', op: 'eq', value: 'bug' },
      },
      { id: 'more', type: 'text', visibleWhen: { field: 'shots', op: 'notEmpty' } },
    ],
    answers: { plan: 'pro', topic: 'billing', invoice: 'INV-123456', urgent: true },
    never: { field: 'shots', op: 'eq', value: 'screen.png' },
  },
  {
    name: 'Wedding reply',
    fields: [
      { id: 'coming', type: 'radio', options: options('Yes, with joy', 'Sadly no'), required: true },
      {
        id: 'guests',
        type: 'number',
        min: 1,
        max: 6,
        step: 1,
        visibleWhen: { field: 'coming', op: 'eq', value: 'yes_with_joy' },
      },
      {
        id: 'children',
        type: 'number',
        min: 0,
        step: 1,
        visibleWhen: { field: 'guests', op: 'gt', value: 1 },
      },
      { id: 'song', type: 'text', visibleWhen: { field: 'coming', op: 'ne', value: 'sadly_no' } },
      {
        id: 'meals',
        type: 'matrix',
        rows: options('Adults', 'Children'),
        options: options('Meat', 'Plants'),
        visibleWhen: { field: 'guests', op: 'notEmpty' },
      },
    ],
    answers: { coming: 'yes_with_joy', guests: 2, children: 0, song: 'Any', meals: { adults: 'meat' } },
    never: { field: 'guests', op: 'eq', value: '2' },
  },
  {
    name: 'Expense claim',
    fields: [
      { id: 'amount', type: 'number', min: 0.01, max: 10_000, step: 0.01, required: true },
      { id: 'currency', type: 'select', options: options('EUR', 'USD'), defaultValue: 'eur' },
      {
        id: 'approver',
        type: 'email',
        required: true,
        visibleWhen: { field: 'amount', op: 'gt', value: 500 },
      },
      {
        id: 'board',
        type: 'checkbox',
        visibleWhen: { field: 'approver', op: 'eq', value: 'board@example.com' },
      },
      { id: 'receipt', type: 'file', accept: ['image/jpg', 'application/pdf'], required: true },
    ],
    answers: { amount: 12.34, currency: 'usd', receipt: { upload_id: 'upl_00000000000000000000000000' } },
    never: { field: 'approver', op: 'eq', value: 'the board' },
  },
  {
    name: 'Course feedback',
    fields: [
      { id: 'stars', type: 'rating', max: 5, required: true },
      {
        id: 'better',
        type: 'textarea',
        minLength: 10,
        visibleWhen: { field: 'stars', op: 'in', value: [1, 2, 3] },
      },
      { id: 'order', type: 'ranking', options: options('Pace', 'Depth', 'Practice') },
      { id: 'first', type: 'text', visibleWhen: { field: 'order', op: 'contains', value: 'pace' } },
      { id: 'when', type: 'time', visibleWhen: { field: 'stars', op: 'gte', value: 4 } },
      { id: 'late', type: 'boolean', visibleWhen: { field: 'when', op: 'gte', value: '18:00' } },
    ],
    answers: { stars: 5, order: ['depth', 'pace', 'practice'], first: 'More', when: '18:30', late: false },
    never: { field: 'stars', op: 'eq', value: 9 },
  },
  {
    name: 'Repair request',
    fields: [
      { id: 'intro', type: 'statement', label: 'In danger, call 112 first.' },
      { id: 'room', type: 'radio', options: options('Kitchen', 'Bath', 'Elsewhere'), allowOther: true },
      {
        id: 'leak',
        type: 'boolean',
        visibleWhen: { field: 'room', op: 'in', value: ['kitchen', 'bath', 'Cellar'] },
      },
      { id: 'since', type: 'datetime', visibleWhen: { field: 'leak', op: 'eq', value: true } },
      {
        id: 'soon',
        type: 'statement',
        label: 'We come today.',
        visibleWhen: { field: 'since', op: 'gt', value: '2026-11-01T00:00:00Z' },
      },
      { id: 'key', type: 'text', visibleWhen: { field: 'room', op: 'contains', value: 'tch' } },
    ],
    answers: { room: 'Cellar', leak: true, since: '2026-11-02T10:00:00+01:00' },
    never: { field: 'intro', op: 'notEmpty' },
  },
  {
    name: 'Volunteers',
    fields: [
      { id: 'over_18', type: 'boolean', required: true },
      {
        id: 'parent',
        type: 'email',
        required: true,
        visibleWhen: { field: 'over_18', op: 'eq', value: false },
      },
      {
        id: 'langs',
        type: 'multi_select',
        options: options('English', 'German', 'Arabic'),
        allowOther: true,
        maxItems: 3,
      },
      { id: 'interpret', type: 'boolean', visibleWhen: { field: 'langs', op: 'contains', value: 'Persian' } },
      { id: 'hours', type: 'number', min: 2, max: 40, step: 2, required: true },
      {
        id: 'shift',
        type: 'select',
        options: options('Morning', 'Evening'),
        visibleWhen: {
          any: [
            { field: 'hours', op: 'lt', value: 11 },
            { field: 'langs', op: 'nin', value: ['english'] },
          ],
        },
      },
    ],
    answers: {
      over_18: false,
      parent: 'byron@example.com',
      langs: ['german', 'Persian'],
      interpret: true,
      hours: 12,
      shift: 'evening',
    },
    never: { field: 'hours', op: 'eq', value: 11 },
  },
];

describe.each(forms)('a form such as $name', ({ name, fields, answers, never }) => {
  const definition = { name, slug: 'form', fields, delivery: { type: 'email' } };
  const options = { keyless: false, allowPrivateUrls: false };

  it('is taken as it is, without a warning, and its answers with it', () => {
    const checked = checkDefinition(definition, options);

    expect(checked).toMatchObject({ ok: true });
    if (!checked.ok) return;
    expect(warningsOf(checked.definition)).toEqual([]);
    expect(compileForm(checked.definition).checkAnswers(answers)).toEqual({ ok: true, answers });
  });

  it('is refused where a condition is one that nobody fulfils', () => {
    const asked = { id: 'asked', type: 'text', visibleWhen: { not: never } };

    const checked = checkDefinition({ ...definition, fields: [...fields, asked] }, options);

    const paths = checked.ok ? [] : checked.violations.map(({ path }) => path);
    const part = never.value === undefined ? 'field' : 'value';
    expect(paths).toEqual([`fields.${fields.length}.visibleWhen.not.${part}`]);
  });
});

type RealForm = {
  name: string;
  fields: object[];
  answers: JsonObject;
  never: { field: string; op: string; value?: string | number };
};
