import { fromBinary, fromJson, toBinary, toJson } from '@bufbuild/protobuf';
import { Ajv2020 } from 'ajv/dist/2020.js';
import ajvFormats from 'ajv-formats';
import { expect, it } from 'vitest';
import { compileForm } from '../../../src/domain/answers/answers.ts';
import { createRandom } from '../../days/world/random.ts';
import { generated, messageOf, versionOf } from './given.ts';
import { randomAnswers, randomFields } from './random-forms.ts';

/** Each makes one form and some sets of answers to it. */
const FORMS = 150;
const ANSWERS_A_FORM = 20;

it('what a form takes is read by its message, written by it again, and taken again', () => {
  let taken = 0;
  for (let seed = 0; seed < FORMS; seed += 1) {
    const random = createRandom(`contracts ${seed}`);
    const version = versionOf(randomFields(random));
    const { checkAnswers } = compileForm(version.definition);
    const message = messageOf(version);
    const ajv = new Ajv2020({ strict: false });
    ajvFormats.default(ajv);
    const schema = JSON.parse(generated('json_schema', version));
    const validate = ajv.compile(schema);
    // Texts and times are compared in ways that JSON Schema can't say; hints have the condition.
    const isHint = ({ path }: { path: string }) => {
      const [, id = ''] = path.split('.');
      return schema.properties[id]?.['x-required'] === true && schema.$defs?.[`visible.${id}`] === undefined;
    };

    for (let n = 0; n < ANSWERS_A_FORM; n += 1) {
      const answers = randomAnswers(random, version.definition.fields);
      const checked = checkAnswers(answers);
      const about = JSON.stringify({ seed, fields: version.definition.fields, answers, checked });

      // What the schema takes, the service takes; it reads empty texts and lists as no answer, too.
      const refused = checked.ok ? [] : checked.violations.filter((one) => !isHint(one));
      if (validate(answers)) expect(refused, about).toEqual([]);
      if (!checked.ok) continue;
      taken += 1;
      const read = fromJson(message, checked.answers);
      expect(toJson(message, read), about).toEqual(checked.answers);
      expect(toJson(message, fromBinary(message, toBinary(message, read))), about).toEqual(checked.answers);
      expect(checkAnswers(toJson(message, read)), about).toEqual(checked);
    }
  }
  expect(taken).toBeGreaterThan(FORMS);
}, 120_000);
