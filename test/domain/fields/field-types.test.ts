import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, it } from 'vitest';
import { FormDefinitionSchema } from '../../../gen/headlessforms/v1/definition_pb.js';
import { agentSchema } from '../../../src/domain/answers/agent-schema.ts';
import { answersInWords, readInputs } from '../../../src/domain/answers/answer-texts.ts';
import { compileForm } from '../../../src/domain/answers/answers.ts';
import { answersSchema, sampleAnswers } from '../../../src/domain/answers/json-schema.ts';
import { checkDefinition } from '../../../src/domain/definition/definition.ts';
import {
  definitionFromMessage,
  definitionToMessage,
} from '../../../src/domain/definition/definition-proto.ts';
import { fieldCases, refusedFields } from '../../support/field-cases.ts';
import { givenDefinition, refusals, sent, withKey } from '../given.ts';

describe.each(fieldCases)('$name', ({ field, normal, good, bad, inputs, read, words, question, schema }) => {
  const definition = givenDefinition({ fields: [{ id: 'it', label: 'It', ...field }] });
  const form = compileForm(definition);
  const validate = new Ajv2020({ strict: false }).compile(answersSchema(definition));

  it('has its defaults filled in, and comes unchanged through its message', () => {
    const bytes = toBinary(FormDefinitionSchema, definitionToMessage(definition));
    const message = fromBinary(FormDefinitionSchema, bytes);

    expect(definition.fields[0]).toEqual({ ...definition.fields[0], ...normal });
    expect(checkDefinition(definitionFromMessage(message), withKey)).toEqual({ ok: true, definition });
    expect(create(FormDefinitionSchema, message)).toBeDefined();
  });

  it('takes what fits, and names the place of what does not, as its JSON Schema does', () => {
    for (const answer of good) {
      expect([answer, form.checkAnswers({ it: answer })]).toEqual([
        answer,
        { ok: true, answers: { it: answer } },
      ]);
      expect([answer, validate({ it: answer })]).toEqual([answer, true]);
    }
    for (const [answer, ...problems] of bad) {
      const checked = form.checkAnswers({ it: answer });
      const found = checked.ok ? [] : checked.violations.map(({ path, code }) => `${path} ${code}`);
      expect([answer, found]).toEqual([answer, problems.map((problem) => `answers.${problem}`)]);
      expect([answer, validate({ it: answer })]).toEqual([answer, false]);
    }
  });

  it('reads the inputs of a form, and reads in words', () => {
    const given = Object.entries(inputs).map(([name, values]) => ({ name, values }));
    const answers = readInputs(definition, given);

    expect(answers).toEqual(read === undefined ? {} : { it: read });
    expect(answersInWords(definition, answers).map(({ text }) => text)).toEqual(
      words === undefined ? [expect.anything()].slice(0, read === undefined ? 0 : 1) : [words],
    );
  });

  it('is a question to an agent, with an example that fits', async () => {
    const samples = sampleAnswers(definition);
    const { questions, jsonSchema, example } = agentSchema(definition, {}, samples);

    expect(questions.map(({ text }) => text)).toEqual(question === undefined ? [] : [question]);
    expect(jsonSchema.properties).toEqual(schema === undefined ? {} : { it: schema });
    expect(form.checkAnswers(example).ok).toBe(true);
    expect(validate(example)).toBe(true);
  });
});

it.each(refusedFields)('%j is refused with its place', (field, ...problems) => {
  const found = refusals(sent({ fields: [{ id: 'it', ...field }] }));

  expect(found).toEqual(problems.map((problem) => `fields.0.${problem}`));
});
