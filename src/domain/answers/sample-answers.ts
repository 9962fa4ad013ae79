import type { Field, FormDefinition } from '../definition/definition.ts';
import type { Json } from '../json.ts';
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
    const sample = sampleFor(field);
    if (sample === undefined) continue;
    const checked = checkAnswers({ [field.id]: sample }, { required: false });
    if (checked.ok) Object.assign(answers, checked.answers);
  }
  return answers;
}

function sampleFor(field: Field): Json | undefined {
  if (field.defaultValue !== undefined) return field.defaultValue;
  const [first] = field.options ?? [];
  switch (field.type) {
    case 'text':
    case 'textarea':
    case 'hidden':
      return sampleText(field);
    case 'email':
      return 'someone@example.com';
    case 'url':
      return 'https://example.com/';
    case 'phone':
      return '+1 555 0100';
    case 'number':
      return field.min ?? field.max ?? field.step ?? 1;
    case 'boolean':
    case 'checkbox':
      return true;
    case 'date':
      return field.min ?? field.max ?? '2030-01-31';
    case 'time':
      return field.min ?? field.max ?? '12:00';
    case 'datetime':
      return field.min ?? field.max ?? '2030-01-31T12:00:00Z';
    case 'select':
    case 'radio':
      return first?.value;
    case 'multi_select':
      return field.options?.slice(0, Math.max(1, field.minItems ?? 1)).map(({ value }) => value);
    case 'file':
      return undefined;
    default:
      return field.type satisfies never;
  }
}

/** Some words, as long as the field wants them. */
function sampleText({ minLength = 0, maxLength = Number.POSITIVE_INFINITY }: Field): string {
  return WORDS.repeat(Math.ceil(Math.max(minLength, 1) / WORDS.length)).slice(
    0,
    Math.min(maxLength, MAX_SAMPLE),
  );
}

const WORDS = 'Some text. ';

/** A sample need not be a page long; a field that insists is left out. */
const MAX_SAMPLE = 1000;
