import {
  type Comparison,
  type Condition,
  type ConditionOp,
  evaluate,
  isEmpty,
} from '../conditions/condition.ts';
import { undecidedFields } from '../conditions/shown-fields.ts';
import type { FormDefinition } from '../definition/definition.ts';
import { type Field, isShown, takesAnswer } from '../fields/field.ts';
import { fieldRules } from '../fields/index.ts';
import { DEFAULT_MAX_LENGTH, SAYS_SOMETHING } from '../fields/text.ts';
import { isObject, type JsonObject, ownValue } from '../json/json.ts';
import type { Answers } from './answers.ts';
import { answererOf, mustBeAnswered } from './json-schema.ts';

/**
 * What an agent is to answer, as briefly as it can be said: the questions that `held` has no answer to and does not
 * rule out, and the JSON Schema of the answers to them that a call may give.
 *
 * The schema says less than that of all answers: the questions have the words, and the service checks the form of
 * addresses and times. `samples` are answers that fit each by itself.
 */
export function agentSchema(definition: FormDefinition, held: Answers, samples: Answers): AgentSchema {
  const isOpen = (field: Field) => takesAnswer(field) && isEmpty(ownValue(held, field.id));
  const left = undecidedFields(definition.fields, isOpen, held);
  const elicitation = elicitationForm(left);
  return {
    questions: left.map(questionOf),
    jsonSchema: schemaOf(left),
    example: exampleOf(left, samples),
    ...(elicitation !== undefined && { elicitation }),
  };
}

/** `reason (required): Why does it come back? Options: broken = It does not work, other`. */
function questionOf(field: Field): AgentQuestion {
  const { id, type, label, required, description, agentHint, visibleWhen, answeredBy } = field;
  const facts = [
    ...(fieldRules[type].toldBySchema === true ? [] : [type]),
    ...(field.allowOther === true ? ['or another text'] : []),
    ...(required ? ['required'] : []),
    ...(answeredBy === 'human' ? ['by a person'] : []),
    ...(answeredBy === 'agent' ? ['by an agent'] : []),
    ...(visibleWhen === undefined ? [] : [`if ${conditionInWords(visibleWhen)}`]),
  ];
  const words = [
    isSame(label, id) ? undefined : label,
    description,
    choicesInWords('Options', field.options),
    choicesInWords('Rows', field.rows),
    endsInWords(field),
    agentHint,
  ].filter((text) => text !== undefined);
  const head = facts.length === 0 ? id : `${id} (${facts.join(', ')})`;
  return { id, text: words.length === 0 ? head : `${head}: ${words.map(sentence).join(' ')}` };
}

/** `Options: s = Small, l = Large`. Values that say what their labels do are in the schema; undefined if all do. */
function choicesInWords(what: string, choices: Field['options'] = []): string | undefined {
  if (choices.every(({ value, label }) => isSame(label, value))) return undefined;
  const words = choices.map(({ value, label }) => (isSame(label, value) ? value : `${value} = ${label}`));
  return `${what}: ${words.join(', ')}`;
}

/** `1 = poor, 5 = great`, as far as the ends of a scale have words. */
function endsInWords({ min, max, minLabel, maxLabel }: Field): string | undefined {
  const ends = [
    [min, minLabel],
    [max, maxLabel],
  ].filter(([, label]) => label !== undefined);
  return ends.length === 0 ? undefined : ends.map(([end, label]) => `${end} = ${label}`).join(', ');
}

/** Whether two texts differ in nothing but case and signs. */
function isSame(left: string, right: string): boolean {
  const [one, other] = [left, right].map((text) => text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, ' '));
  return one === other;
}

function sentence(text: string, index: number, { length }: readonly string[]): string {
  return index === length - 1 || /\p{P}$/u.test(text) ? text : `${text}.`;
}

function schemaOf(fields: Field[]): JsonObject {
  const must = fields.filter(mustBeAnswered);
  return {
    type: 'object',
    properties: Object.fromEntries(fields.map((field) => [field.id, propertyOf(field)])),
    ...(must.length > 0 && { required: must.map(({ id }) => id) }),
    additionalProperties: false,
  };
}

function propertyOf(field: Field): JsonObject {
  if (field.answeredBy === 'human') return answererOf(field);
  const { jsonSchema, agentSchema: briefSchema = jsonSchema } = fieldRules[field.type];
  const {
    type,
    pattern,
    allOf,
    minLength,
    minItems,
    maxLength,
    uniqueItems: _,
    ...schema
  } = briefSchema(field, false);
  const { items } = schema;
  const isOwnLength = field.maxLength !== undefined && field.maxLength !== DEFAULT_MAX_LENGTH;
  return {
    ...(type !== undefined && schema.enum === undefined && { type }),
    ...schema,
    ...(isObject(items) && Array.isArray(items.enum) && { items: { enum: items.enum } }),
    ...(field.pattern !== undefined && pattern !== undefined && { pattern }),
    ...(field.pattern !== undefined && allOf !== undefined && { allOf }),
    ...(minLength !== undefined && minLength !== 0 && { minLength }),
    ...(minItems !== undefined && minItems !== 0 && { minItems }),
    ...(isOwnLength && maxLength !== undefined && { maxLength }),
    ...(field.defaultValue !== undefined && { default: field.defaultValue }),
    ...answererOf(field),
  };
}

/**
 * The least that is to be answered, or all if nothing must be. Conditions name earlier fields only, so one pass in
 * order knows all that they ask about.
 */
function exampleOf(fields: Field[], samples: Answers): Answers {
  const example: Answers = {};
  const nothingNeeded = !fields.some(({ required, answeredBy }) => required && answeredBy !== 'human');
  for (const { id, visibleWhen, answeredBy, required } of fields) {
    const sample = ownValue(samples, id);
    const asked = visibleWhen === undefined || evaluate(visibleWhen, example);
    if (sample === undefined || !asked || answeredBy === 'human') continue;
    if (required || nothingNeeded) example[id] = sample;
  }
  return example;
}

export type AgentSchema = {
  questions: AgentQuestion[];
  jsonSchema: JsonObject;
  example: Answers;
  elicitation?: JsonObject;
};

/** A question in one line of words. */
type AgentQuestion = { id: string; text: string };

/** A condition as an English phrase that names fields by their ids: `plan is "pro" and seats is more than 5`. */
export function conditionInWords(condition: Condition): string {
  return phrase(condition, false);
}

/** `inner`: parts of a list are to be put in parentheses. */
function phrase(condition: Condition, inner: boolean): string {
  if ('all' in condition) return joined(condition.all, ' and ', inner);
  if ('any' in condition) return joined(condition.any, ' or ', inner);
  if ('not' in condition) return `not (${phrase(condition.not, false)})`;
  const { field, op, value } = condition;
  return `${field} ${verbs[op]}${op === 'empty' || op === 'notEmpty' ? '' : ` ${valueInWords(value)}`}`;
}

function joined(conditions: Condition[], word: string, inner: boolean): string {
  const [only] = conditions;
  if (only !== undefined && conditions.length === 1) return phrase(only, inner);
  const text = conditions.map((each) => phrase(each, true)).join(word);
  return inner ? `(${text})` : text;
}

function valueInWords(value: Comparison['value']): string {
  return Array.isArray(value)
    ? value.map((each) => JSON.stringify(each)).join(', ')
    : JSON.stringify(value ?? null);
}

const verbs: Record<ConditionOp, string> = {
  eq: 'is',
  ne: 'is not',
  in: 'is one of',
  nin: 'is none of',
  lt: 'is less than',
  lte: 'is at most',
  gt: 'is more than',
  gte: 'is at least',
  contains: 'contains',
  empty: 'has no answer',
  notEmpty: 'has an answer',
};

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
  const properties = asked.map((field) => [field.id, elicitedProperty(field)] as const);
  if (properties.some(([, property]) => property === undefined)) return undefined;
  return {
    type: 'object',
    properties: Object.fromEntries(
      properties.flatMap(([id, property]) => (property ? [[id, property]] : [])),
    ),
    required: asked.filter(({ required }) => required).map(({ id }) => id),
  };
}

function elicitedProperty(field: Field): JsonObject | undefined {
  if (field.answeredBy === 'human' || field.personal === true || field.visibleWhen !== undefined)
    return undefined;
  const format = formats[field.type];
  const rules = fieldRules[field.type];
  const {
    pattern,
    allOf,
    maxLength,
    format: _,
    uniqueItems: __,
    anyOf: ___,
    multipleOf = 1,
    ...shape
  } = rules.jsonSchema(field, field.required);
  const schema: JsonObject = { ...shape, ...(field.step === 1 && { type: 'integer' }) };
  const description = [field.description, hintsOf(field)].filter(Boolean).join('\n');
  const isShaped = (pattern !== undefined && pattern !== SAYS_SOMETHING) || allOf !== undefined;
  const isKnown = !isShaped || (format ?? examples[field.type]) !== undefined;
  const isUnsaid = !isKnown || field.pattern !== undefined || multipleOf !== 1;
  const { type, items } = schema;
  const sayable = typeof type === 'string' ? keywords[type] : undefined;
  const choices = field.options?.map(({ value, label }) => ({ const: value, title: label }));
  if (isUnsaid || !Object.keys(schema).every((keyword) => sayable?.includes(keyword))) return undefined;
  // The form that a client shows can't put choices into an order.
  if (rules.ordersOptions === true) return undefined;
  const { enum: values, ...rest } = schema;
  return {
    ...rest,
    title: field.label,
    ...(description !== '' && { description }),
    ...(format !== undefined && { format }),
    ...(maxLength !== undefined && maxLength !== DEFAULT_MAX_LENGTH && format === undefined && { maxLength }),
    ...(values !== undefined && choices !== undefined && { oneOf: choices }),
    ...(isObject(items) && choices !== undefined && { items: { anyOf: choices } }),
    ...(field.defaultValue !== undefined && field.defaultValue !== null && { default: field.defaultValue }),
  };
}

/**
 * What a property may say beside its titles, by its type (MCP 2025-11-25 and 2026-07-28, PrimitiveSchemaDefinition).
 */
const keywords: Record<string, readonly string[]> = {
  string: ['type', 'minLength', 'enum'],
  number: ['type', 'minimum', 'maximum'],
  integer: ['type', 'minimum', 'maximum'],
  // `enum` is that of a box that must be ticked: the service refuses a no.
  boolean: ['type', 'enum'],
  array: ['type', 'items', 'minItems', 'maxItems'],
};

/** What the schema of a text can't say, in signs that need no language: the form, the bounds and the choices. */
function hintsOf({ type, min, max, options = [], allowOther }: Field): string {
  return [
    ...(examples[type] ?? []),
    ...(typeof min === 'string' ? [`≥ ${min}`] : []),
    ...(typeof max === 'string' ? [`≤ ${max}`] : []),
    ...(allowOther === true ? [[...options.map(({ label }) => label), '…'].join(' / ')] : []),
  ].join(', ');
}

/** Of texts that have no format in JSON Schema that clients know. */
const examples: Partial<Record<Field['type'], [string]>> = { time: ['hh:mm'], phone: ['+1 555 0100'] };

/** The formats that stand for patterns of ours. */
const formats: Partial<Record<Field['type'], string>> = {
  email: 'email',
  url: 'uri',
  date: 'date',
  datetime: 'date-time',
};

const MAX_QUESTIONS = 8;
