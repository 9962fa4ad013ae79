import { type Field, isShown } from '../fields/field.ts';
import { fieldRules } from '../fields/index.ts';
import { DEFAULT_MAX_LENGTH } from '../fields/text.ts';
import { isObject, type JsonObject } from '../json/json.ts';

/**
 * The questions as a form that a client of MCP shows itself (elicitation, form mode): a flat object of texts, numbers,
 * booleans and choices.
 *
 * Undefined if a person must see the page instead: there are none or more than eight questions, one that its schema
 * can't say or that has a condition, one that only a person may answer on the page, or one whose answer is personal,
 * which the program between would read.
 */
export function elicitationForm(left: readonly Field[]): JsonObject | undefined {
  const asked = left.filter(isShown);
  const lacksOthers = left.some((field) => field.required && !isShown(field));
  if (asked.length === 0 || asked.length > MAX_QUESTIONS || lacksOthers) return undefined;
  const properties = asked.map((field) => [field.id, propertyOf(field)] as const);
  if (properties.some(([, property]) => property === undefined)) return undefined;
  return {
    type: 'object',
    properties: Object.fromEntries(
      properties.flatMap(([id, property]) => (property ? [[id, property]] : [])),
    ),
    required: asked.filter(({ required }) => required).map(({ id }) => id),
  };
}

function propertyOf(field: Field): JsonObject | undefined {
  if (field.answeredBy === 'human' || field.personal === true || field.visibleWhen !== undefined)
    return undefined;
  const format = formats[field.type];
  const rules = fieldRules[field.type];
  const {
    pattern,
    maxLength,
    format: _,
    uniqueItems: __,
    ...schema
  } = rules.jsonSchema(field, field.required);
  const isUnsaid =
    format === undefined ? pattern !== undefined : (field.pattern ?? field.min ?? field.max) !== undefined;
  const { type, items } = schema;
  const sayable = typeof type === 'string' ? keywords[type] : undefined;
  const choices = field.options?.map(({ value, label }) => ({ const: value, title: label }));
  if (isUnsaid || !Object.keys(schema).every((keyword) => sayable?.includes(keyword))) return undefined;
  // Its order is the answer, which choices don't have.
  if (field.type === 'ranking') return undefined;
  const { enum: values, ...rest } = schema;
  return {
    ...rest,
    title: field.label,
    ...(field.description !== undefined && { description: field.description }),
    ...(format !== undefined && { format }),
    ...(maxLength !== undefined && maxLength !== DEFAULT_MAX_LENGTH && format === undefined && { maxLength }),
    ...(values !== undefined && choices !== undefined && { oneOf: choices }),
    ...(isObject(items) && choices !== undefined && { items: { anyOf: choices } }),
    ...(field.defaultValue !== undefined && field.defaultValue !== null && { default: field.defaultValue }),
  };
}

/** What a property may say beside its titles, by its type (MCP 2025-11-25 and 2026-07-28, PrimitiveSchemaDefinition). */
const keywords: Record<string, readonly string[]> = {
  string: ['type', 'minLength', 'enum'],
  number: ['type', 'minimum', 'maximum'],
  integer: ['type', 'minimum', 'maximum'],
  boolean: ['type'],
  array: ['type', 'items', 'minItems', 'maxItems'],
};

/** The formats that stand for patterns of ours. */
const formats: Partial<Record<Field['type'], string>> = {
  email: 'email',
  url: 'uri',
  date: 'date',
  datetime: 'date-time',
};

const MAX_QUESTIONS = 8;
