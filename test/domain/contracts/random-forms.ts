import { type FieldType, fieldTypes } from '../../../src/domain/fields/field.ts';
import { isScalar } from '../../../src/domain/json/json.ts';
import type { Random } from '../../days/world/types.ts';
import { leastField, options, refusals, sent } from '../given.ts';

const ids = [
  'a',
  'A',
  'a_b',
  'aB',
  'a-b',
  'constructor',
  'toString',
  'class',
  'name',
  'clear_name',
  'x1',
  'valueOf',
];

/** Up to eight fields of any type, some of them required or conditional. */
export function randomFields(random: Random): object[] {
  const count = random.whole(1, 8);
  const left = [...ids];
  const fields: { id: string; type: FieldType }[] = [];
  for (let n = 0; n < count; n += 1) {
    const [id = ''] = left.splice(random.whole(0, left.length - 1), 1);
    const type = random.pick(fieldTypes);
    const earlier = fields.filter((field) => field.type !== 'statement');
    const field = {
      id,
      ...leastField(type),
      ...random.pick(variants[type] ?? [{}]),
      ...(type !== 'statement' && random.chance(0.3) && { required: true }),
      ...(earlier.length > 0 && random.chance(0.4) && { visibleWhen: conditionOn(random, earlier) }),
    };
    fields.push(field as { id: string; type: FieldType });
  }
  return fields;
}

/** The same fields with one to three changes of any kind; the definition may be refused. */
export function changedFields(random: Random, fields: readonly object[]): object[] {
  const next: Record<string, unknown>[] = structuredClone(fields).map((field) => ({ ...field }));
  for (let n = random.whole(1, 3); n > 0 && next.length > 0; n -= 1) {
    const at = random.whole(0, next.length - 1);
    const field = next[at] ?? {};
    const type = random.pick(fieldTypes.filter((each) => each === field.type));
    const kept = { id: field.id, ...('visibleWhen' in field && { visibleWhen: field.visibleWhen }) };
    const changes: (() => void)[] = [
      () => next.splice(at, 1),
      () =>
        next.push({ id: `new${n}`, ...leastField(random.pick(fieldTypes)), required: random.chance(0.5) }),
      () => next.splice(at, 1, { ...kept, ...leastField(random.pick(fieldTypes)), required: field.required }),
      () => next.splice(at, 1, { ...kept, ...leastField(type), ...random.pick(variants[type] ?? [{}]) }),
      () => Object.assign(field, { required: field.required !== true }),
      () => Object.assign(field, { hidden: true }),
      () => Object.assign(field, { answeredBy: random.pick(['human', 'agent', 'anyone']) }),
      () => Object.assign(field, { defaultValue: random.pick((likely[type] ?? ['x']).flat()) }),
      () => void Reflect.deleteProperty(field, 'defaultValue'),
      () => void Reflect.deleteProperty(field, 'visibleWhen'),
      () =>
        'options' in field &&
        Object.assign(field, { options: options(...random.pick([['x'], ['y', 'z', 'x']])) }),
      () =>
        'rows' in field &&
        Object.assign(field, { rows: options(...random.pick([['r'], ['s'], ['r', 't']])) }),
    ];
    random.pick(changes)();
  }
  return next;
}

/** One that the field's answers may fulfil or not; others are refused. */
function conditionOn(random: Random, earlier: { id: string; type: FieldType }[]): object {
  const asked = random.pick(earlier);
  const { id: field } = asked;
  const compared = [...(likely[asked.type] ?? []).flat(), 'x', 2, true].filter(isScalar);
  const value = random.pick([...compared, null, false]);
  const one = random.pick([
    { field, op: 'notEmpty' },
    { field, op: 'empty' },
    { field, op: 'eq', value },
    { field, op: 'ne', value },
    { field, op: 'in', value: [value, null] },
    { field, op: 'nin', value: [value] },
    { field, op: 'contains', value: random.pick(['x', 'y', 'a.c']) },
    { field, op: random.pick(['lt', 'lte', 'gt', 'gte']), value },
  ]);
  const condition = random.pick([one, { not: one }, { any: [one, { field, op: 'empty' }] }, { all: [one] }]);
  const { visibleWhen: _, ...known } = { visibleWhen: {}, ...asked };
  const fields = [known, { id: 'last', type: 'text', visibleWhen: condition }];
  return refusals(sent({ fields })).length === 0 ? condition : { field, op: 'notEmpty' };
}

const cells = { rows: options('r', 's'), options: options('x', 'y') };

const variants: Partial<Record<FieldType, object[]>> = {
  number: [{}, { step: 1, min: -5, max: 5 }, { step: 3, min: 0, max: 2 ** 31 - 1 }, { defaultValue: 2 }],
  select: [{}, { allowOther: true }],
  multi_select: [{}, { minItems: 1 }, { allowOther: true }],
  file: [{}, { maxFiles: 3 }],
  matrix: [cells, { ...cells, multiple: true }],
  text: [{}, { minLength: 2 }, { defaultValue: 'x' }],
  rating: [{}, { max: 10 }],
  scale: [{ min: 0 }, {}],
};

/** Answers to some of the fields: most of a kind that their types take, the others anything. */
export function randomAnswers(
  random: Random,
  fields: { id: string; type: FieldType; options?: { value: string }[] }[],
): Record<string, unknown> {
  const given = fields.filter(() => random.chance(0.8));
  return Object.fromEntries(
    given.map(({ id, type, options: choices }) => {
      const fitting = likely[type] ?? [];
      const value = random.chance(0.9) && fitting.length > 0 ? random.pick(fitting) : random.pick(anything);
      return [id, type === 'ranking' && choices ? choices.map((choice) => choice.value) : value];
    }),
  );
}

const upload = { upload_id: `upl_0${'1'.repeat(25)}` };
const texts = ['x', 'ab', 'a.c', '👍 Ünïcode', ' ', 'y"\\\n', 'null'];

/** By type, what it takes at least in some forms. */
const likely: Partial<Record<FieldType, unknown[]>> = {
  text: texts,
  textarea: texts,
  email: ['a@b.co'],
  url: ['https://a.co/b'],
  phone: ['+41 44 123'],
  number: [0, 3, -3, 1, 2.5, 3.0000000000000004, 2 ** 31 - 1, 1e300, 5e-324, 2 ** 53 - 1],
  boolean: [true, false],
  checkbox: [true, false],
  date: ['2028-02-29'],
  time: ['12:30', '12:30:00'],
  datetime: ['2026-01-01T00:00:00.123456789Z', '2026-01-01T00:00+01:00'],
  select: ['x', 'y', 'other'],
  radio: ['x', 'y'],
  multi_select: [['x'], ['y', 'x'], ['x', 'other'], []],
  hidden: ['x', 1, 0.5, true, false],
  file: [upload, [upload]],
  rating: [1, 5],
  scale: [0, 1, 5],
  matrix: [{ r: 'x' }, { r: 'x', s: 'y' }, { r: ['x', 'y'] }, { r: ['x'], s: ['y'] }],
  address: [
    { line1: '1', city: 'B', country: 'CH' },
    { line1: '1', line2: '', city: 'B', postal_code: '3000', country: 'CH' },
  ],
  signature: [{ text: 'Ada' }, upload],
};

const anything = [null, '', [], {}, 0, true, 'x', ['x'], 2 ** 53, 1e22, upload, { r: 1 }];
