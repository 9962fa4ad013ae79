import type { FormDefinition } from '../definition/definition.ts';
import { fieldRules } from '../fields/index.ts';
import { type Answers, compileForm } from './answers.ts';

/**
 * Made-up answers to a form, for whoever writes a receiver and wants to see one.
 *
 * Each answer fits its field; a field that nothing can be made up for (a file, a text with a
 * pattern that the sample does not match) is left out.
 */
export function sampleAnswers(definition: FormDefinition): Answers {
  const { checkAnswers } = compileForm(definition);
  const answers: Answers = {};
  for (const field of definition.fields) {
    const sample = field.defaultValue ?? fieldRules[field.type].sample(field);
    if (sample === undefined) continue;
    const checked = checkAnswers({ [field.id]: sample }, { required: false });
    if (checked.ok) Object.assign(answers, checked.answers);
  }
  return answers;
}
