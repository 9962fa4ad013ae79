import { expect, it } from 'vitest';
import { compileForm } from '../../../src/domain/answers/answers.ts';
import { sampleAnswers } from '../../../src/domain/answers/sample-answers.ts';
import { checkDefinition, type FormDefinition } from '../../../src/domain/definition/definition.ts';
import { fieldTypes } from '../../../src/domain/fields/field.ts';
import { leastField } from '../given.ts';

it('makes up an answer that the form takes for each type of field but files and statements', async () => {
  const form = definition(fieldTypes.map((type) => ({ id: type, ...leastField(type) })));

  const answers = await sampleAnswers(form, compileForm(form).checkAnswers);

  expect(compileForm(form).checkAnswers(answers)).toEqual({ ok: true, answers });
  expect(Object.keys(answers)).toEqual(fieldTypes.filter((type) => type !== 'file' && type !== 'statement'));
});

it('keeps to the bounds of the fields', async () => {
  const form = definition([
    { id: 'name', type: 'text', minLength: 30, maxLength: 32, required: true },
    { id: 'short', type: 'text', maxLength: 2, required: true },
    { id: 'age', type: 'number', min: 18, step: 3, required: true },
    { id: 'from', type: 'date', min: '2040-01-01', required: true },
  ]);

  const answers = await sampleAnswers(form, compileForm(form).checkAnswers);

  expect(compileForm(form).checkAnswers(answers)).toEqual({ ok: true, answers });
});

it('leaves out what it can make up no answer for', async () => {
  const form = definition([{ id: 'code', type: 'text', pattern: '[0-9]{4}', required: true }]);

  expect(await sampleAnswers(form, compileForm(form).checkAnswers)).toEqual({});
});

function definition(fields: object[]): FormDefinition {
  const input = { name: 'Sample', slug: 'sample', fields, delivery: { type: 'email' } };
  const checked = checkDefinition(input, { keyless: false, allowPrivateUrls: false });
  if (!checked.ok) throw new Error(JSON.stringify(checked.violations));
  return checked.definition;
}
