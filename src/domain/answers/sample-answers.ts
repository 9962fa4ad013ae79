import type { FormDefinition } from '../definition/definition.ts';
import { fieldRules } from '../fields/index.ts';
import type { Answers, AnswersOptions, AnswersResult } from './answers.ts';

/**
 * Made-up answers to a form, for whoever writes a receiver and wants to see one.
 *
 * Each answer fits its field; a field that nothing can be made up for (a file, a text with a
 * pattern that the sample does not match) is left out.
 */
export async function sampleAnswers(
  definition: FormDefinition,
  checkAnswers: (answers: Answers, options: AnswersOptions) => AnswersResult | Promise<AnswersResult>,
): Promise<Answers> {
  const answers: Answers = {};
  for (const field of definition.fields) {
    const sample = field.defaultValue ?? fieldRules[field.type].sample(field);
    if (sample === undefined) continue;
    const checked = await checkAnswers({ [field.id]: sample }, { required: false, byPerson: true });
    if (checked.ok) Object.assign(answers, checked.answers);
  }
  return answers;
}
