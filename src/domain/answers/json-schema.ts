import type { FormDefinition } from '../definition/definition.ts';
import { type Field, takesAnswer } from '../fields/field.ts';
import { fieldRules } from '../fields/index.ts';
import type { JsonObject } from '../json/json.ts';
import { type Answers, compileForm } from './answers.ts';

/**
 * The JSON Schema (2020-12) of the answers to a form, for agents and their tools.
 *
 * As strict as `checkAnswers` where JSON Schema can say it. It can't say: which fields are visible (such fields are
 * never `required` here), which fields only a person may answer (they are `readOnly`), which days a month has, bounds
 * of times, the finer points of URLs, and patterns that only RE2 knows. An empty text or list as "no answer" is left
 * out; null says the same.
 */
export function answersSchema(definition: FormDefinition): JsonObject {
  const fields = definition.fields.filter(takesAnswer);
  const must = fields.filter(mustBeAnswered);
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    title: definition.name,
    properties: Object.fromEntries(fields.map((field) => [field.id, fieldJsonSchema(field)])),
    required: must.map(({ id }) => id),
    additionalProperties: false,
  };
}

/** A field that may be invisible or has a default can be left out; one that a person answers must be. */
export function mustBeAnswered({ required, visibleWhen, defaultValue, answeredBy }: Field): boolean {
  return required && visibleWhen === undefined && defaultValue === undefined && answeredBy !== 'human';
}

function fieldJsonSchema(field: Field): JsonObject {
  const needed = mustBeAnswered(field);
  const schema = fieldRules[field.type].jsonSchema(field, needed);
  const words = [field.description, field.agentHint].filter((text) => text !== undefined);
  return {
    title: field.label,
    ...(words.length > 0 && { description: words.join('\n\n') }),
    ...(needed ? schema : orNull(schema)),
    ...(field.defaultValue !== undefined && { default: field.defaultValue }),
    ...answererOf(field),
  };
}

/** Who may answer, as the JSON Schema says it: `readOnly` is what no call can give. */
export function answererOf({ answeredBy }: Field): JsonObject {
  if (answeredBy === 'human') return { readOnly: true, 'x-answered-by': answeredBy };
  return answeredBy === 'agent' ? { 'x-answered-by': answeredBy } : {};
}

function orNull(schema: JsonObject): JsonObject {
  const { type, enum: values } = schema;
  return {
    ...schema,
    ...(type !== undefined && { type: [type, 'null'].flat() }),
    ...(Array.isArray(values) && { enum: [...values, null] }),
  };
}

/**
 * Made-up answers to a form, for anyone who writes a receiver and wants to see one.
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
    const checked = checkAnswers({ [field.id]: sample }, { required: false, byPerson: true });
    if (checked.ok) Object.assign(answers, checked.answers);
  }
  return answers;
}
