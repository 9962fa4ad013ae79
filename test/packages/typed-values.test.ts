import { expect, it } from 'vitest';
import { createForm } from '../../packages/client/src/form/create-form.ts';

const definition = {
  id: 'form_1',
  version: { id: 'ver_1', number: 1, checksum: '' },
  open: true,
  name: 'Bestellung',
  fields: [
    { id: 'price', type: 'number', label: 'Preis', required: false, hidden: false, page: 1 },
    { id: 'day', type: 'date', label: 'Tag', required: false, hidden: false, page: 1 },
    { id: 'phone', type: 'phone', label: 'Telefon', required: false, hidden: false, page: 1 },
    {
      id: 'why',
      type: 'text',
      label: 'Warum',
      required: false,
      hidden: false,
      page: 1,
      visibleWhen: { field: 'phone', op: 'eq', value: '030 12-3' },
    },
  ],
  settings: { locale: 'de' },
};

const open = (localNumbers: boolean) =>
  createForm(definition, { storage: null, languages: ['de'], localNumbers });

it('createForm reads numbers in the form’s language where its inputs are texts, else as an input of numbers has them', async () => {
  const [local, plain] = [open(true), open(false)];
  await local.ready;

  local.setText('price', '1.500,5');
  plain.setText('price', '1.500');
  expect([local.state.values.price, plain.state.values.price]).toEqual([1500.5, 1.5]);
  local.set('price', 2.5);
  plain.set('price', 2.5);
  expect([local, plain].map(({ state }) => state.fields[0]?.text)).toEqual(['2,5', '2.5']);

  local.setText('price', '1.5');
  local.setText('day', '0024-05-01');
  expect(await local.next()).toBe(false);
  expect(local.state.fields.map(({ error }) => error)).toEqual([
    'Geben Sie eine Zahl ein. Meinten Sie 1,5 oder 15?',
    'Geben Sie ein Datum ein. Meinten Sie 2024?',
    undefined,
  ]);
});

it('createForm’s conditions see a telephone number as it is stored', () => {
  const form = open(false);

  form.setText('phone', '\u202a030\u00a012\u20113');

  expect(form.state.values.phone).toBe('030 12-3');
  expect(form.state.fields.map(({ id }) => id)).toContain('why');
});
