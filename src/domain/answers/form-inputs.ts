import type { FormDefinition } from '../definition/definition.ts';
import { isShown, takesAnswer } from '../fields/field.ts';
import { fieldRules } from '../fields/index.ts';
import type { Json } from '../json.ts';

/**
 * Reads the texts of an HTML form as answers, each by its field's type.
 *
 * Names that are no field's are dropped. A text that can't be read stays text, so that
 * `checkAnswers` names it. Of an input that came several times the last counts, as with the usual
 * pair of a hidden and a ticked input; a `multi_select` and a `file` that takes several count them
 * all. Line breaks become LF, and a datetime without offset, which is what browsers have, reads
 * as UTC. `humanOnly` leaves out fields that the page does not show: what a human could not see, a human did not answer.
 */
export function readInputs(
  definition: FormDefinition,
  inputs: readonly FormInput[],
  options: { humanOnly?: boolean } = {},
): { [fieldId: string]: Json } {
  const byName = new Map(inputs.map(({ name, values }) => [name, values]));
  const answers: { [fieldId: string]: Json } = {};
  for (const field of definition.fields) {
    if (!takesAnswer(field) || (options.humanOnly && !isShown(field))) continue;
    const values = byName.get(field.id);
    if (values !== undefined && values.length > 0) {
      answers[field.id] = fieldRules[field.type].readInput(values, field);
    }
  }
  return answers;
}

/** An input of a form and its values, in the order they were sent. */
export type FormInput = { name: string; values: readonly string[] };
