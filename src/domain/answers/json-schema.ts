import type { FormDefinition } from '../definition/definition.ts';
import type { Field } from '../definition/field.ts';
import { emailPattern, MAX_ADDRESS_LENGTH } from '../email-address.ts';
import type { Json, JsonObject } from '../json.ts';
import { timePatterns } from '../time.ts';
import { MAX_PHONE_LENGTH, phonePattern, urlPattern } from './answer-text.ts';
import { MAX_HIDDEN_LENGTH } from './answer-types.ts';

/**
 * The JSON Schema (2020-12) of the answers to a form, for agents and their tools.
 *
 * As strict as `checkAnswers` where JSON Schema can say it. It can't say: which fields are visible
 * (such fields are never `required` here), which days a month has, bounds of times, the finer
 * points of URLs, and patterns that only RE2 knows. An empty text or list as "no answer" is left
 * out; null says the same.
 */
export function answersSchema(definition: FormDefinition): JsonObject {
  const must = definition.fields.filter(mustBeAnswered);
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    title: definition.name,
    properties: Object.fromEntries(definition.fields.map((field) => [field.id, fieldJsonSchema(field)])),
    required: must.map(({ id }) => id),
    additionalProperties: false,
  };
}

/** A field that may be invisible or has a default can be left out. */
function mustBeAnswered(field: Field): boolean {
  return field.required && field.visibleWhen === undefined && field.defaultValue === undefined;
}

function fieldJsonSchema(field: Field): JsonObject {
  const schema = typeSchema(field);
  const words = [field.description, field.agentHint].filter((text) => text !== undefined);
  return {
    title: field.label,
    ...(words.length > 0 && { description: words.join('\n\n') }),
    ...(mustBeAnswered(field) ? schema : orNull(schema)),
    ...(field.defaultValue !== undefined && { default: field.defaultValue }),
  };
}

function orNull(schema: JsonObject): JsonObject {
  const { type, enum: values } = schema;
  return {
    ...schema,
    ...(type !== undefined && { type: [type, 'null'].flat() }),
    ...(Array.isArray(values) && { enum: [...values, null] }),
  };
}

function typeSchema(field: Field): JsonObject {
  switch (field.type) {
    case 'text':
    case 'textarea':
      return textSchema(field, []);
    case 'email':
      return { ...textSchema(field, [emailPattern], MAX_ADDRESS_LENGTH), format: 'email' };
    case 'url':
      return textSchema(field, [urlPattern]);
    case 'phone':
      return textSchema(field, [phonePattern], MAX_PHONE_LENGTH);
    case 'number':
      return {
        type: 'number',
        ...(typeof field.min === 'number' && { minimum: field.min }),
        ...(typeof field.max === 'number' && { maximum: field.max }),
        ...(field.step !== undefined && { multipleOf: field.step }),
      };
    case 'boolean':
      return { type: 'boolean' };
    case 'checkbox':
      return field.required ? { type: 'boolean', enum: [true] } : { type: 'boolean' };
    case 'date':
    case 'time':
    case 'datetime':
      return { type: 'string', pattern: timePatterns[field.type] };
    case 'select':
    case 'radio':
      return { type: 'string', enum: optionValues(field) };
    case 'multi_select':
      return {
        type: 'array',
        items: { type: 'string', enum: optionValues(field) },
        uniqueItems: true,
        minItems: leastOf(field, field.minItems),
        ...(field.maxItems !== undefined && { maxItems: field.maxItems }),
      };
    case 'hidden':
      return {
        type: ['string', 'number', 'boolean'],
        minLength: leastOf(field, 0),
        maxLength: MAX_HIDDEN_LENGTH,
      };
    case 'file':
      return fileSchema(field);
    default:
      return field.type satisfies never;
  }
}

function textSchema(field: Field, patterns: string[], longest = Infinity): JsonObject {
  const own = field.pattern === undefined ? undefined : portablePattern(field.pattern);
  const all = own === undefined ? patterns : [...patterns, own];
  const [pattern, ...others] = all;
  return {
    type: 'string',
    minLength: leastOf(field, field.minLength),
    ...(field.maxLength !== undefined && { maxLength: Math.min(field.maxLength, longest) }),
    ...(pattern !== undefined && { pattern }),
    ...(others.length > 0 && { allOf: others.map((each) => ({ pattern: each })) }),
  };
}

/** A pattern over the whole text in the dialect of JSON Schema; undefined where RE2 means something else. */
function portablePattern(pattern: string): string | undefined {
  if (/\[\[:|\(\?[^:]/.test(pattern)) return undefined;
  try {
    new RegExp(pattern, 'u');
    return `^(?:${pattern})$`;
  } catch {
    return undefined;
  }
}

function fileSchema(field: Field): JsonObject {
  const { maxFiles = 1 } = field;
  const upload: JsonObject = {
    type: 'object',
    properties: { upload_id: { type: 'string', pattern: '^upl_[0-9a-hjkmnp-tv-z]{26}$' } },
    required: ['upload_id'],
    additionalProperties: false,
  };
  return maxFiles === 1
    ? upload
    : { type: 'array', items: upload, minItems: leastOf(field, 0), maxItems: maxFiles };
}

/** An empty text or list is no answer, so where there must be one, it has something in it. */
function leastOf(field: Field, least = 0): number {
  return mustBeAnswered(field) ? Math.max(least, 1) : least;
}

function optionValues(field: Field): Json[] {
  return (field.options ?? []).map(({ value }) => value);
}
