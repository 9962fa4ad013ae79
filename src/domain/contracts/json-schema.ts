import { answersSchema, mustBeAnswered } from '../answers/json-schema.ts';
import { type Comparison, type Condition, evaluate } from '../conditions/condition.ts';
import type { FormDefinition } from '../definition/definition.ts';
import { type Field, takesAnswer } from '../fields/field.ts';
import { fieldRules } from '../fields/index.ts';
import { SAYS_SOMETHING } from '../fields/text.ts';
import { isObject, type Json, type JsonObject, LEAST_IN_EXPONENTS, ownValue } from '../json/json.ts';
import type { VersionToDescribe } from './answers-file.ts';
import { answerTypeOf } from './contract.ts';

/**
 * The JSON Schema (2020-12) of a version's answers: what `answersSchema` says, which fields must be answered where
 * conditions hold, and what JSON Schema can't say as `x-` hints in the words of the definition.
 */
export function versionSchema({
  formId,
  version,
  checksum,
  definition,
  contract,
}: VersionToDescribe): JsonObject {
  const { properties, ...schema } = answersSchema(definition);
  const fields = definition.fields.filter(takesAnswer);
  const conditions = conditionSchemas(fields);
  return {
    ...schema,
    title: contract.message,
    description: [definition.name, definition.description].filter((text) => text !== undefined).join('\n\n'),
    ...(formId !== '' && { 'x-form-id': formId }),
    ...(version === undefined
      ? { 'x-provisional': true }
      : { 'x-form-version': version, 'x-checksum': checksum }),
    properties: Object.fromEntries(
      fields.map((field) => {
        const property = isObject(properties) ? properties[field.id] : undefined;
        const number = ownValue(contract.fields, field.id)?.number ?? null;
        return [
          field.id,
          { ...(isObject(property) ? property : {}), 'x-field-number': number, ...hintsOf(field) },
        ];
      }),
    ),
    ...conditions,
  } as JsonObject;
}

/** What the service checks beyond what JSON Schema can say. */
function hintsOf(field: Field): JsonObject {
  const { type, required, visibleWhen, min, max, pattern, patternMessage, accept, maxBytes } = field;
  const hints: Record<string, unknown> = {
    'x-field-type': type,
    ...(answerTypeOf(field) === 'int32' && { type: mustBeAnswered(field) ? 'integer' : ['integer', 'null'] }),
    // The format takes only days of the calendar, as the service does.
    format: type === 'date' ? 'date' : undefined,
    not: type === 'number' || type === 'hidden' ? inexactSchema : undefined,
    'x-required': required && visibleWhen !== undefined ? true : undefined,
    'x-visible-when': visibleWhen,
    'x-min': typeof min === 'string' ? min : undefined,
    'x-max': typeof max === 'string' ? max : undefined,
    'x-pattern': pattern,
    'x-pattern-message': patternMessage,
    'x-accept': accept,
    'x-max-bytes': type === 'file' ? maxBytes : undefined,
  };
  return Object.fromEntries(Object.entries(hints).filter(([, value]) => value !== undefined)) as JsonObject;
}

/** Whole numbers that may stand for others. */
const inexactSchema = {
  type: 'number',
  anyOf: [
    { exclusiveMinimum: Number.MAX_SAFE_INTEGER, exclusiveMaximum: LEAST_IN_EXPONENTS },
    { exclusiveMinimum: -LEAST_IN_EXPONENTS, exclusiveMaximum: -Number.MAX_SAFE_INTEGER },
  ],
};

/** For each field that is required where a condition holds: that it must be there. */
function conditionSchemas(fields: FormDefinition['fields']): JsonObject {
  const visible = new Map<string, Json | undefined>();
  // Conditions name earlier fields only.
  for (const field of fields) {
    if (field.visibleWhen !== undefined) visible.set(field.id, schemaOf(field.visibleWhen, fields, visible));
  }
  const rules = fields.flatMap((field): JsonObject[] => {
    const { id, required, defaultValue, answeredBy } = field;
    const isSaid = visible.get(id) !== undefined;
    if (!isSaid || !required || defaultValue !== undefined || answeredBy === 'human') return [];
    const needed = fieldRules[field.type].jsonSchema(field, true);
    return [branch(reference(id), { properties: { [id]: needed }, required: [id] }, true)];
  });
  if (rules.length === 0) return {};
  const defs = [...visible].flatMap(([id, schema]) =>
    schema === undefined ? [] : [[`visible.${id}`, schema]],
  );
  return { allOf: rules, $defs: Object.fromEntries(defs) };
}

function reference(id: string): JsonObject {
  return { $ref: `#/$defs/visible.${id}` };
}

/** What answers fit for which a condition holds; undefined if JSON Schema can't say it. */
function schemaOf(condition: Condition, fields: Field[], visible: Visible): Json | undefined {
  if ('not' in condition) {
    const schema = schemaOf(condition.not, fields, visible);
    return schema === undefined ? undefined : { not: schema };
  }
  if ('field' in condition) return comparisonSchema(condition, fields, visible);
  const [word, parts] =
    'all' in condition ? (['allOf', condition.all] as const) : (['anyOf', condition.any] as const);
  const schemas = parts.map((part) => schemaOf(part, fields, visible));
  const known = schemas.filter((schema) => schema !== undefined);
  if (known.length < schemas.length) return undefined;
  return known.length === 0 ? word === 'allOf' : { [word]: known };
}

/** An answer counts if its field is visible, and else as none; the default counts where there is none. */
function comparisonSchema(comparison: Comparison, fields: Field[], visible: Visible): Json | undefined {
  const { field: id } = comparison;
  const field = fields.find((each) => each.id === id);
  const value = valueSchema(comparison);
  if (field === undefined || field.answeredBy === 'human' || value === undefined) return undefined;
  const { defaultValue } = field;
  const needsMore = field.required && fieldRules[field.type].needsMoreThanSpaces === true;
  const something = { not: { enum: [null, '', []] }, ...(needsMore && { pattern: SAYS_SOMETHING }) };
  const isGiven = { required: [id], properties: { [id]: something } };
  const none = evaluate(comparison, defaultValue === undefined ? {} : { [id]: defaultValue });
  const counted = branch(isGiven, { properties: { [id]: value } }, none);
  if (field.visibleWhen === undefined) return counted;
  return visible.get(id) === undefined ? undefined : branch(reference(id), counted, evaluate(comparison, {}));
}

function branch(condition: Json, yes: Json, no: Json): JsonObject {
  return Object.fromEntries([condition, yes, no].map((schema, at) => [keywords[at] ?? '', schema]));
}

const keywords = ['if', 'then', 'else'];

/** What an answer fits for which a comparison holds. Texts are in an order that JSON Schema does not know. */
function valueSchema({ op, value }: Comparison): Json | undefined {
  const wanted = value ?? null;
  switch (op) {
    case 'empty':
      return false;
    case 'notEmpty':
      return true;
    case 'eq':
      return isTime(wanted) ? undefined : { const: wanted };
    case 'ne':
      return isTime(wanted) ? undefined : { not: { const: wanted } };
    case 'in':
      return oneOf(wanted);
    case 'nin': {
      const schema = oneOf(wanted);
      return schema === undefined ? undefined : { not: schema };
    }
    case 'lt':
    case 'lte':
    case 'gt':
    case 'gte':
      return typeof wanted === 'number' ? { type: 'number', [orders[op]]: wanted } : undefined;
    case 'contains':
      return {
        anyOf: [
          { type: 'array', contains: { const: wanted } },
          ...(typeof wanted === 'string' && wanted !== ''
            ? [
                {
                  type: 'string',
                  pattern: wanted.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&'),
                },
              ]
            : []),
        ],
      };
    default:
      return op satisfies never;
  }
}

function oneOf(wanted: Json): Json | undefined {
  if (!Array.isArray(wanted)) return false;
  if (wanted.some(isTime)) return undefined;
  return { anyOf: [{ enum: wanted }, { type: 'array', contains: { enum: wanted } }] };
}

/** Times are compared by the instants they mean. */
function isTime(value: Json): boolean {
  return [value]
    .flat()
    .some((each) => typeof each === 'string' && /^(\d\d:\d\d|\d{4}-\d\d-\d\dT)/.test(each));
}

const orders = { lt: 'exclusiveMaximum', lte: 'maximum', gt: 'exclusiveMinimum', gte: 'minimum' } as const;

/** When fields that have a condition are visible; undefined if JSON Schema can't say it. */
type Visible = ReadonlyMap<string, Json | undefined>;
