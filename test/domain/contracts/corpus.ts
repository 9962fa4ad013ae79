import type { ChangeKind } from '../../../src/domain/contracts/field-changes.ts';
import { options } from '../given.ts';

/** A field `f` before and after, other parts of the form, and the kinds of change that are reported. */
export type Case = {
  name: string;
  former: object;
  next: object;
  kinds: ChangeKind[];
  /** Why the verdict differs from what the sampled answers show. */
  explained?: string;
};

const text = { type: 'text' };
const number = { type: 'number' };
const select = { type: 'select', options: options('x', 'y') };
const many = { type: 'multi_select', options: options('x', 'y', 'z') };
const ranking = { type: 'ranking', options: options('x', 'y') };
const matrix = { type: 'matrix', rows: options('r', 's'), options: options('x', 'y') };
const file = { type: 'file' };
const date = { type: 'date', min: '2026-01-01', max: '2026-12-31' };

/** One field before and after. */
const field = (name: string, former: object, next: object, ...kinds: ChangeKind[]): Case => ({
  name,
  former: {
    fields: [
      { id: 'other', type: 'text' },
      { id: 'f', ...former },
    ],
  },
  next: {
    fields: [
      { id: 'other', type: 'text' },
      { id: 'f', ...next },
    ],
  },
  kinds,
});
const fields = (name: string, former: object[], next: object[], ...kinds: ChangeKind[]): Case => ({
  name,
  former: { fields: former },
  next: { fields: next },
  kinds,
});
const form = (name: string, former: object, next: object, ...kinds: ChangeKind[]): Case => ({
  name,
  former: { fields: [{ id: 'f', type: 'text' }], ...former },
  next: { fields: [{ id: 'f', type: 'text' }], ...next },
  kinds,
});
/** Such an answer stays valid, and is of the same type; but it says something else. */
const means = (one: Case): Case => ({ ...one, explained: 'The answers mean something else.' });
const but = (explained: string, one: Case): Case => ({ ...one, explained });

const f = { id: 'f', type: 'text' };
const g = { id: 'g', type: 'text' };
const condition = { field: 'other', op: 'eq', value: 'yes' };

/** Changes that forms meet, one at a time. */
export const corpus: Case[] = [
  fields('nothing', [f, g], [f, g]),
  fields('an optional field is new', [g], [g, f], 'field_added'),
  fields('a required field is new', [g], [g, { ...f, required: true }], 'required_field_added'),
  fields(
    'a required field with a default is new',
    [g],
    [g, { ...f, required: true, defaultValue: 'a' }],
    'field_added',
  ),
  fields('an optional field goes', [g, f], [g], 'field_removed'),
  fields('a required field goes', [g, { ...f, required: true }], [g], 'required_field_removed'),
  fields('a field with a default goes', [g, { ...f, defaultValue: 'a' }], [g], 'required_field_removed'),
  fields('a field is renamed', [f], [g], 'field_removed', 'field_added'),
  fields('fields change places', [f, g], [g, f], 'text_changed'),
  fields('a statement is new', [f], [f, { id: 's', type: 'statement', label: 'Hello' }], 'text_changed'),
  field('a field becomes a statement', text, { type: 'statement' }, 'field_removed', 'text_changed'),

  field('text becomes a number', text, number, 'field_retyped'),
  field('a number becomes text', number, text, 'field_retyped'),
  field('one choice becomes several', select, many, 'field_retyped'),
  field('a choice becomes yes or no', select, { type: 'boolean' }, 'field_retyped'),
  field('a number becomes whole', number, { ...number, min: 0, max: 9, step: 1 }, 'field_retyped'),
  but(
    'As JSON the same numbers are valid; generated code has another type for them.',
    field('a whole number becomes any', { ...number, min: 0, max: 9, step: 1 }, number, 'field_retyped'),
  ),
  field('one file becomes several', file, { ...file, maxFiles: 2 }, 'field_retyped'),
  field('one option a row becomes several', matrix, { ...matrix, multiple: true }, 'field_retyped'),
  field('a hidden value becomes text', { type: 'hidden' }, text, 'field_retyped'),
  field('text becomes several lines', text, { type: 'textarea' }, 'limits_widened'),
  field('text becomes an email address', text, { type: 'email' }, 'limits_narrowed', 'meaning_changed'),
  means(field('an email address becomes text', { type: 'email' }, text, 'meaning_changed')),
  field(
    'an email address becomes short text',
    { type: 'email' },
    { ...text, maxLength: 5 },
    'limits_narrowed',
    'meaning_changed',
  ),
  means(field('a choice becomes text', select, text, 'meaning_changed')),
  field('text becomes a choice', text, select, 'limits_narrowed', 'meaning_changed'),
  means(field('a date becomes text', { type: 'date' }, text, 'meaning_changed')),
  field('a list becomes radio buttons', select, { ...select, type: 'radio' }, 'limits_widened'),
  means(
    field(
      'a rating becomes a scale',
      { type: 'rating' },
      { type: 'scale' },
      'text_changed',
      'meaning_changed',
    ),
  ),
  field('yes or no becomes a box', { type: 'boolean' }, { type: 'checkbox' }, 'limits_widened'),
  field(
    'yes or no becomes a box that must be ticked',
    { type: 'boolean', required: true },
    { type: 'checkbox', required: true },
    'limits_narrowed',
  ),

  field(
    'a box that is ticked by default must be ticked',
    { type: 'checkbox', defaultValue: true },
    { type: 'checkbox', defaultValue: true, required: true },
    'made_required',
  ),
  field('an answer becomes required', text, { ...text, required: true }, 'made_required'),
  field('an answer becomes optional', { ...text, required: true }, text, 'made_optional'),
  field(
    'a default stands in for a required answer',
    { ...text, required: true },
    { ...text, required: true, defaultValue: 'a' },
    'default_changed',
  ),
  field(
    'the default of a required answer goes',
    { ...text, required: true, defaultValue: 'a' },
    { ...text, required: true },
    'made_required',
    'default_changed',
  ),

  field(
    'the longest text gets longer',
    { ...text, maxLength: 2 },
    { ...text, maxLength: 3 },
    'limits_widened',
  ),
  field('the longest text gets shorter', text, { ...text, maxLength: 3 }, 'limits_narrowed'),
  field('the shortest text gets longer', text, { ...text, minLength: 2 }, 'limits_narrowed'),
  field('the shortest text gets shorter', { ...text, minLength: 2 }, text, 'limits_widened'),
  field('a pattern is new', text, { ...text, pattern: '[a-b]*' }, 'limits_narrowed'),
  field('a pattern goes', { ...text, pattern: '[a-b]*' }, text, 'limits_widened'),
  but(
    'Whether one pattern takes all that another takes is not decided: a changed one counts as narrower.',
    field(
      'a pattern takes more',
      { ...text, pattern: '[a-b]*' },
      { ...text, pattern: '[a-c]*' },
      'limits_narrowed',
    ),
  ),
  field('the least number rises', number, { ...number, min: 1 }, 'limits_narrowed'),
  field('the least number falls', { ...number, min: 1 }, { ...number, min: 0 }, 'limits_widened'),
  field('the greatest number falls', { ...number, max: 10 }, { ...number, max: 5 }, 'limits_narrowed'),
  field('the greatest number rises', { ...number, max: 5 }, { ...number, max: 10 }, 'limits_widened'),
  field('numbers become multiples', number, { ...number, step: 0.5 }, 'limits_narrowed'),
  field('multiples of two become whole', { ...number, step: 2 }, { ...number, step: 1 }, 'limits_widened'),
  field('three tenths become tenths', { ...number, step: 0.3 }, { ...number, step: 0.1 }, 'limits_widened'),
  field('whole becomes multiples of two', { ...number, step: 1 }, { ...number, step: 2 }, 'limits_narrowed'),
  field('the first day is later', date, { ...date, min: '2026-02-01' }, 'limits_narrowed'),
  field('the last day is later', date, { ...date, max: '2027-12-31' }, 'limits_widened'),
  means(field('a rating has more stars', { type: 'rating' }, { type: 'rating', max: 10 }, 'meaning_changed')),
  field(
    'a rating has fewer stars',
    { type: 'rating' },
    { type: 'rating', max: 3 },
    'limits_narrowed',
    'meaning_changed',
  ),
  means(field('a scale begins at 0', { type: 'scale' }, { type: 'scale', min: 0 }, 'meaning_changed')),
  field(
    'a scale begins at 1',
    { type: 'scale', min: 0 },
    { type: 'scale', min: 1 },
    'limits_narrowed',
    'meaning_changed',
  ),
  means(
    field(
      'the ends of a scale are swapped',
      { type: 'scale', minLabel: 'Bad', maxLabel: 'Good' },
      { type: 'scale', minLabel: 'good', maxLabel: 'bad' },
      'text_changed',
      'meaning_changed',
    ),
  ),
  field(
    'one end of a scale has other words',
    { type: 'scale', minLabel: 'Bad', maxLabel: 'Good' },
    { type: 'scale', minLabel: 'Bad', maxLabel: 'Very good' },
    'text_changed',
  ),
  field('more choices are needed', many, { ...many, minItems: 2 }, 'limits_narrowed'),
  field('fewer choices are possible', many, { ...many, maxItems: 2 }, 'limits_narrowed'),
  field('more choices are possible', { ...many, maxItems: 2 }, many, 'limits_widened'),
  but(
    'What a file holds is checked when it is uploaded, not with the answer.',
    field('fewer types of files', file, { ...file, accept: ['image/*'] }, 'limits_narrowed'),
  ),
  field('any type of file', { ...file, accept: ['image/*'] }, file, 'limits_widened'),
  but(
    'What a file holds is checked when it is uploaded, not with the answer.',
    field('smaller files', file, { ...file, maxBytes: 1000 }, 'limits_narrowed'),
  ),
  field(
    'only typed signatures',
    { type: 'signature' },
    { type: 'signature', accept: ['typed'] },
    'limits_narrowed',
  ),

  field('an option is new', select, { ...select, options: options('x', 'y', 'z') }, 'option_added'),
  field('an option goes', select, { ...select, options: options('x') }, 'option_removed'),
  field(
    'an option is renamed',
    select,
    { ...select, options: options('x', 'z') },
    'option_removed',
    'option_added',
  ),
  field(
    'an option goes where others may be written',
    { ...select, allowOther: true },
    { ...select, allowOther: true, options: options('x') },
    'option_unlisted',
  ),
  field('other texts may be written', select, { ...select, allowOther: true }, 'limits_widened'),
  field('other texts may not be written', { ...select, allowOther: true }, select, 'limits_narrowed'),
  field(
    'the words of an option change',
    { ...select, options: [{ label: 'Yes, daily', value: 'x' }] },
    { ...select, options: [{ label: 'yes,  daily (or nearly)', value: 'x' }] },
    'text_changed',
  ),
  field(
    'an option means something else',
    { ...select, options: [{ label: 'Every day', value: 'x' }] },
    { ...select, options: [{ label: 'Never', value: 'x' }] },
    'label_replaced',
  ),
  field(
    'a number in an option is another',
    { ...select, options: [{ label: 'Up to 5', value: 'x' }] },
    { ...select, options: [{ label: 'Up to 50', value: 'x' }] },
    'label_replaced',
  ),
  field(
    'a row means something else',
    { ...matrix, rows: [{ label: 'Speed', value: 'r' }] },
    { ...matrix, rows: [{ label: 'Price', value: 'r' }] },
    'label_replaced',
  ),
  field(
    'one more to rank',
    ranking,
    { ...ranking, options: options('x', 'y', 'z') },
    'option_added',
    'limits_narrowed',
  ),
  field('one row more', matrix, { ...matrix, rows: options('r', 's', 't') }, 'option_added'),
  field(
    'one row more that must be answered',
    { ...matrix, required: true },
    { ...matrix, required: true, rows: options('r', 's', 't') },
    'option_added',
    'made_required',
  ),
  field('one row less', matrix, { ...matrix, rows: options('r') }, 'option_removed'),

  field('the field is asked of some', text, { ...text, visibleWhen: condition }, 'condition_changed'),
  field(
    'a required field is asked of some',
    { ...text, required: true },
    { ...text, required: true, visibleWhen: condition },
    'made_optional',
    'condition_changed',
  ),
  field(
    'a required field is asked of all',
    { ...text, required: true, visibleWhen: condition },
    { ...text, required: true },
    'condition_changed',
    'made_required',
  ),
  field('only people may answer', text, { ...text, answeredBy: 'human' }, 'answerer_narrowed'),
  but(
    'Callers may still answer; people on the page no longer can.',
    field('only agents may answer', text, { ...text, answeredBy: 'agent' }, 'answerer_narrowed'),
  ),
  field('anyone may answer', { ...text, answeredBy: 'human' }, text, 'answerer_widened'),
  field('the field is hidden', text, { ...text, hidden: true }, 'visibility_changed'),
  but(
    'Callers may still answer; people on the page no longer can.',
    field(
      'a required field is hidden',
      { ...text, required: true },
      { ...text, required: true, hidden: true },
      'visibility_changed',
      'answerer_narrowed',
    ),
  ),
  fields(
    'a default decides that a required field is asked',
    [
      { ...g, defaultValue: 'b' },
      { ...f, required: true, visibleWhen: { field: 'g', op: 'eq', value: 'a' } },
    ],
    [
      { ...g, defaultValue: 'a' },
      { ...f, required: true, visibleWhen: { field: 'g', op: 'eq', value: 'a' } },
    ],
    'default_changed',
    'made_required',
  ),
  field('the field is on another page', text, { ...text, page: 2 }, 'page_moved'),
  field(
    'the words of a field change',
    text,
    { ...text, label: 'Other', description: 'Words' },
    'text_changed',
  ),

  form('the name changes', { name: 'One' }, { name: 'Two' }, 'text_changed'),
  form('the page goes', {}, { settings: { publicPage: false } }, 'access_narrowed'),
  form('partial answers are no longer kept', { settings: { allowPartial: true } }, {}, 'access_narrowed'),
  form(
    'an origin may no longer post',
    { settings: { allowedOrigins: ['https://a.example', 'https://b.example'] } },
    { settings: { allowedOrigins: ['https://a.example'] } },
    'access_narrowed',
  ),
  form(
    'one more origin may post',
    { settings: { allowedOrigins: ['https://a.example'] } },
    { settings: { allowedOrigins: ['https://a.example', 'https://b.example'] } },
    'setting_changed',
  ),
  form(
    'the form closes earlier',
    { settings: { closesAt: '2040-01-01T00:00:00Z' } },
    { settings: { closesAt: '2030-01-01T00:00:00Z' } },
    'access_narrowed',
  ),
  form('the form stays open', { settings: { closesAt: '2040-01-01T00:00:00Z' } }, {}, 'setting_changed'),
  form(
    'the form takes fewer',
    { settings: { maxSubmissions: 10 } },
    { settings: { maxSubmissions: 9 } },
    'access_narrowed',
  ),
  form(
    'the form takes more',
    { settings: { maxSubmissions: 10 } },
    { settings: { maxSubmissions: 11 } },
    'setting_changed',
  ),
  form('each mailbox answers once', {}, { settings: { onePerRespondent: true } }, 'access_narrowed'),
  form('the words on the button change', {}, { settings: { submitLabel: 'Go' } }, 'setting_changed'),
  form(
    'answers go elsewhere',
    {},
    { delivery: { type: 'webhook', url: 'https://hooks.example.com/' } },
    'delivery_changed',
  ),
];

const address = { line1: '1 High Street', city: 'London', country: 'GB' };
const upload = { upload_id: `upl_${'0'.repeat(26)}` };

/** Answers of every shape, near the bounds that the corpus moves. */
export const pool: unknown[] = [
  ['a', 'ab', 'abc', 'cc', 'x'.repeat(6), 'x'.repeat(200), 'x'.repeat(10_000)],
  ['x', 'y', 'z', 'a@b.co', 'someone@example.com', 'https://a.example/', '+1 555 0100'],
  ['2026-01-01', '2026-06-01', '2026-12-31', '10:00', '23:59:59', '2026-06-01T10:00:00Z'],
  [-5, 0, 0.25, 0.5, 1, 2, 3, 4, 5, 6, 9, 10, 50, true, false],
  [['x'], ['y'], ['z'], ['x', 'y'], ['y', 'x'], ['x', 'z'], ['x', 'y', 'z']],
  [{ r: 'x' }, { r: 'x', s: 'y' }, { s: 'y' }, { r: 'x', s: 'y', t: 'x' }, { r: ['x'] }],
  [address, { text: 'Ada Lovelace' }, upload, [upload], [upload, upload]],
].flat();
