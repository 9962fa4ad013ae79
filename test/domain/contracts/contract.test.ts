import { expect, it } from 'vitest';
import {
  type Contract,
  firstContract,
  nextContract,
  reservedRanges,
} from '../../../src/domain/contracts/contract.ts';
import type { FormDefinition } from '../../../src/domain/definition/definition.ts';
import { givenDefinition } from '../given.ts';

it('numbers fields in their order, and takes no number twice', () => {
  const first = versionOf(['a', 'b', 'c']);
  const second = versionOf(['c', 'd', 'a'], first);
  const third = versionOf(['b', 'c'], second);

  expect(numbersOf(first)).toEqual({ a: 1, b: 2, c: 3 });
  expect(numbersOf(second)).toEqual({ c: 3, d: 4, a: 1 });
  expect(numbersOf(third)).toEqual({ b: 5, c: 3 });
  expect(reservedRanges(first.contract)).toEqual([]);
  expect(reservedRanges(third.contract)).toEqual([
    [1, 2],
    [4, 4],
  ]);
});

it('goes on after all numbers that were given, also from a version that is current again', () => {
  const first = versionOf(['a', 'b']);
  const second = versionOf(['a', 'c'], first);

  const third = versionOf(['a', 'b', 'd'], first, second.contract.nextNumber);

  expect(numbersOf(third)).toEqual({ a: 1, b: 2, d: 4 });
  expect(reservedRanges(third.contract)).toEqual([[3, 3]]);
});

it('gives a field of another generated type a new number, and of the same type none', () => {
  const first = versionOf([
    { id: 'n', type: 'number' },
    { id: 't', type: 'text' },
  ]);

  const next = versionOf(
    [
      { id: 'n', type: 'number', step: 1, min: 0, max: 9 },
      { id: 't', type: 'email' },
    ],
    first,
  );

  expect(numbersOf(next)).toEqual({ n: 3, t: 2 });
});

it('leaves out the numbers that protobuf keeps for itself', () => {
  const { definition, contract } = versionOf(['a']);

  const next = versionOf(['a', 'b', 'c'], { definition, contract: { ...contract, nextNumber: 18_999 } });

  expect(numbersOf(next)).toEqual({ a: 1, b: 18_999, c: 20_000 });
  expect(reservedRanges(next.contract)).toEqual([[2, 18_998]]);
});

it.each([
  [['firstName'], ['first_name']],
  [['first-name'], ['first_name']],
  [
    ['URLOfSite', 'x2Y'],
    ['url_of_site', 'x2_y'],
  ],
  [
    ['a-', 'b__c'],
    ['a', 'b_c'],
  ],
  [
    ['first_name', 'firstName', 'FIRSTNAME'],
    ['first_name_1', 'first_name_2', 'firstname_3'],
  ],
  [
    ['name', 'clear_name', 'nameSize'],
    ['name_1', 'clear_name_2', 'name_size_3'],
  ],
  [
    ['a_1', 'a', 'A'],
    ['a_1', 'a_2', 'a_3'],
  ],
  [
    ['aB', 'a_b', 'a_b_1'],
    ['a_b_1_1', 'a_b_2', 'a_b_1'],
  ],
  [
    ['descriptor', 'class', 'constructor'],
    ['descriptor_1', 'class_2', 'constructor_3'],
  ],
  [
    ['from', 'errno', 'ProtoReflect', 'valueOf', 'hasOwnProperty', 'hash', 'concept'],
    ['from_1', 'errno_2', 'proto_reflect_3', 'value_of_4', 'has_own_property_5', 'hash_6', 'concept_7'],
  ],
  [
    ['fromm', 'new', 'public', 'func'],
    ['fromm', 'new', 'public', 'func'],
  ],
])('names the fields %j %j', (ids, names) => {
  expect(namesOf(versionOf(ids))).toEqual(names);
});

it('keeps names while fields come and go, but for one that becomes the id of another field', () => {
  const first = versionOf(['first_name', 'last-name']);
  const second = versionOf(['first_name', 'last-name', 'firstName'], first);
  const third = versionOf(['last-name', 'firstName', 'last_name'], second);

  expect(namesOf(first)).toEqual(['first_name', 'last_name']);
  expect(namesOf(second)).toEqual(['first_name', 'last_name', 'first_name_3']);
  expect(namesOf(third)).toEqual(['last_name_2', 'first_name_3', 'last_name_4']);
});

it.each([
  ['Contact us, please!', 'ContactUsPleaseAnswers'],
  ['Anmeldung für Gäste', 'AnmeldungFurGasteAnswers'],
  ['2030 survey', 'Form2030SurveyAnswers'],
  ['お問い合わせ', 'FormAnswers'],
])('names the message of %j %s, and keeps it when the form is renamed', (name, message) => {
  const definition = { ...givenDefinition({ fields: [{ id: 'a', type: 'text' }] }), name };
  const contract = firstContract('form_one', definition);

  expect(contract.message).toBe(message);
  expect(nextContract({ definition, contract }, { ...definition, name: 'Other' }).message).toBe(message);
});

it.each([
  ['form_01k', 'headlessforms.generated.form_01k'],
  ['contact-us.eu', 'headlessforms.generated.contact_us_eu'],
  ['2030', 'headlessforms.generated.form_2030'],
  ['class', 'headlessforms.generated.class_form'],
  ['from', 'headlessforms.generated.from_form'],
  ['func', 'headlessforms.generated.func_form'],
  ['register', 'headlessforms.generated.register_form'],
  ['std', 'headlessforms.generated.std_form'],
])('calls the package of %s %s', (owner, name) => {
  expect(firstContract(owner, { name: 'Form', fields: [] }).package).toBe(name);
});

type Given = (string | { id: string; type: string; [attribute: string]: unknown })[];
type Numbered = { definition: FormDefinition; contract: Contract };

function versionOf(fields: Given, before?: Numbered, nextNumber?: number): Numbered {
  const given = fields.map((field) => (typeof field === 'string' ? { id: field, type: 'text' } : field));
  const definition = givenDefinition({ fields: given });
  const contract: Contract =
    before === undefined
      ? firstContract('form_one', definition)
      : nextContract(before, definition, nextNumber);
  return { definition, contract };
}

function numbersOf({ contract }: { contract: Contract }) {
  return Object.fromEntries(Object.entries(contract.fields).map(([id, { number }]) => [id, number]));
}

function namesOf({ contract }: { contract: Contract }) {
  return Object.values(contract.fields).map(({ name }) => name);
}
