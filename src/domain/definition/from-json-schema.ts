import { describeReceived, pathOf, type Violation } from '../errors/violations.ts';
import { isObject } from '../json/json.ts';
import { formLimits, MAX_PROBLEMS, MAX_QUESTIONS } from '../limits/limits.ts';

/**
 * The questions that a flat JSON Schema asks, as Zod's `toJSONSchema` and Pydantic's `model_json_schema` write it: an
 * object whose properties are strings (also of the formats date, date-time, time, email and uri), numbers, integers,
 * booleans, enums of texts, or arrays of such an enum. References within the schema are followed; a property that may
 * be null is one that need not be answered, though it is required; a boolean that must be true is a box to tick. What
 * can't be asked is refused with its path. What a schema has too many of is not looked into.
 *
 * Answers are checked as those of any form, which is not all that the schema says: an answer is left out where the
 * schema takes null, and fields judge addresses and times by rules of their own.
 */
export function definitionFromSchema(schema: Schema): SchemaResult {
  const reader = new QuestionReader(schema);
  const definition = reader.readRoot();
  return reader.violations.length > 0
    ? { ok: false, violations: reader.violations }
    : { ok: true, definition };
}

/**
 * Reads a JSON Schema one part after the other: follows its references, takes null out of what may be null, and
 * collects what is refused, by its path in the schema.
 */
class SchemaReader {
  readonly violations: Violation[] = [];
  readonly root: Schema;

  constructor(root: Schema) {
    this.root = root;
  }

  /** Follows references within the schema; what stands beside one goes over what it names. */
  resolve(schema: Schema, path: string): Schema {
    let resolved = this.#bounded(schema, path);
    for (let depth = 0; depth < MAX_REFERENCES; depth += 1) {
      const { $ref, allOf, ...rest } = resolved;
      const [single, ...others] = Array.isArray(allOf) ? allOf : [];
      if ($ref === undefined && (others.length > 0 || !isObject(single))) break;
      const target = $ref === undefined ? single : this.#find($ref);
      if (!isObject(target)) {
        this.refuse(path === '' ? '$ref' : `${path}.$ref`, 'Expected a reference within the schema');
        return rest;
      }
      resolved = { ...this.#bounded(target, path), ...rest };
    }
    return resolved;
  }

  /** The schema, or an empty one if it has too many keywords or a list of too many: many places can share one. */
  #bounded(schema: Schema, path: string): Schema {
    const keywords = Object.keys(schema);
    const long = keywords.find((keyword) => [schema[keyword]].flat().length > formLimits.options);
    if (keywords.length <= MAX_KEYWORDS && long === undefined) return schema;
    const most =
      long === undefined ? `${MAX_KEYWORDS} keywords` : `${formLimits.options} items of ${long.slice(0, 64)}`;
    this.refuse(path, `Expected at most ${most}`, 'too_big');
    return {};
  }

  #find(reference: unknown): unknown {
    const names = typeof reference === 'string' ? /^#\/(\$defs|definitions)\/([^/]+)$/.exec(reference) : null;
    const [, group = '', name = ''] = names ?? [];
    const definitions = this.root[group];
    return isObject(definitions) && Object.hasOwn(definitions, name) ? definitions[name] : undefined;
  }

  /** The schema of a property without null, and whether it may be that: as far as all keywords let it. */
  withoutNull(schema: Schema, path: string): { schema: Schema; isNullable: boolean } {
    const names = ['type', 'enum', schema.anyOf === undefined ? 'oneOf' : 'anyOf'];
    const plain: Schema = { ...schema };
    let isNullable = schema.const === undefined;
    for (const name of names.filter((each) => schema[each] !== undefined)) {
      const all = [schema[name]].flat();
      const left = all.filter((one) => !(name === 'type' ? one === 'null' : isNull(one)));
      isNullable &&= left.length < all.length;
      plain[name] = name === 'type' && left.length === 1 ? left[0] : left;
    }
    const choices = names.at(-1) ?? '';
    const { [choices]: list, ...rest } = plain;
    const [only, ...more] = Array.isArray(list) ? list : [];
    const isAlone = isNullable && isObject(only) && more.length === 0;
    return { schema: isAlone ? { ...this.resolve(only, path), ...rest } : plain, isNullable };
  }

  refuseUnknown(schema: Schema, path: string, known: string[]): void {
    for (const keyword of Object.keys(schema)) {
      const isAsked = keyword === 'readOnly' && schema[keyword] === false;
      if (known.includes(keyword) || annotations.has(keyword) || isAsked) continue;
      this.refuse(path === '' ? keyword : `${path}.${keyword}`, `"${keyword.slice(0, 64)}" can't be asked`);
    }
  }

  refuse(path: string, message: string, code: Violation['code'] = 'custom'): undefined {
    if (this.violations.length < MAX_PROBLEMS) this.violations.push({ path: pathOf(path), code, message });
  }
}

/** Whether a value, or a schema, is that of null. */
function isNull(one: unknown): boolean {
  return isObject(one) ? one.type === 'null' || one.const === null : one === null;
}

/** Keywords that say nothing about which answers fit. */
const annotations = new Set(['$schema', '$id', '$comment', 'examples', 'deprecated', 'title', 'description']);

/** Also ends circles. */
const MAX_REFERENCES = 8;

/** JSON Schema has some sixty. */
const MAX_KEYWORDS = 100;

class QuestionReader extends SchemaReader {
  readRoot(): Schema {
    const schema = this.resolve(this.root, '');
    if (this.violations.length > 0) return {};
    const { title, description, properties, required = [], additionalProperties, ...rest } = schema;
    this.refuseUnknown(rest, '', ['type', '$defs', 'definitions']);
    if (schema.type !== 'object') this.refuse('type', 'Expected "object"');
    if (typeof additionalProperties === 'object' && Object.keys(additionalProperties ?? {}).length > 0) {
      this.refuse('additionalProperties', 'Expected only properties that are named');
    }
    const count = isObject(properties) ? Object.keys(properties).length : 0;
    if (!isObject(properties) || count === 0 || count > MAX_QUESTIONS) {
      this.refuse('properties', `Expected 1 to ${MAX_QUESTIONS} properties`);
      return {};
    }
    const must = new Set(Array.isArray(required) ? required : []);
    for (const name of must) {
      if (typeof name !== 'string' || !Object.hasOwn(properties, name)) {
        this.refuse('required', `There is no property ${describeReceived('required', name)}`);
      }
    }
    const fields = Object.entries(properties).map(([name, property]) =>
      this.#readProperty(name, property, must.has(name)),
    );
    return { ...textsOf({ name: title, description }), fields };
  }

  #readProperty(name: string, given: unknown, required: boolean): Schema {
    const path = `properties.${name}`;
    if (!fieldId.test(name)) {
      this.refuse(path, 'A property begins with a letter and has at most 64 letters, digits, "_" and "-"');
    }
    if (!isObject(given)) {
      this.refuse(path, 'Expected a schema');
      return {};
    }
    const { schema, isNullable } = this.withoutNull(this.resolve(given, path), path);
    const { title, description, default: preset, ...rest } = schema;
    return {
      id: name,
      ...textsOf({ label: title, description }),
      ...this.#readType(rest, path, required && !isNullable),
      required: required && !isNullable,
      ...(preset !== undefined && preset !== null && { defaultValue: preset }),
    };
  }

  #readType(schema: Schema, path: string, required: boolean): Schema {
    const isBoolean = schema.type === 'boolean' || (schema.type === undefined && schema.const === true);
    if (isBoolean) return this.#readBoolean(schema, path, required);
    const options = this.#optionsOf(schema, path);
    if (options !== undefined) {
      this.refuseUnknown(schema, path, ['type', ...enumKeywords]);
      return { type: options.length > FEW_OPTIONS ? 'select' : 'radio', options };
    }
    switch (schema.type) {
      case 'string':
        return this.#readString(schema, path);
      case 'number':
      case 'integer':
        return this.#readNumber(schema, path);
      case 'array':
        return this.#readArray(schema, path);
      default:
        this.refuse(
          schema.type === undefined ? path : `${path}.type`,
          'Only strings, numbers, integers, booleans, enums of texts and arrays of an enum can be asked',
        );
        return {};
    }
  }

  /** One that can only be true is a box that must be ticked. */
  #readBoolean(schema: Schema, path: string, required: boolean): Schema {
    this.refuseUnknown(schema, path, ['type', 'const', 'enum']);
    const can = (value: boolean) =>
      (schema.const ?? value) === value && [schema.enum ?? value].flat().includes(value);
    if (can(true) && can(false)) return { type: 'boolean' };
    if (can(true) && required) return { type: 'checkbox' };
    this.refuse(
      path,
      'A boolean can be asked to be true if it is required and not null, and never to be false',
    );
    return {};
  }

  #readString(schema: Schema, path: string): Schema {
    const { format, minLength, maxLength, pattern } = schema;
    this.refuseUnknown(schema, path, ['type', 'format', 'minLength', 'maxLength', 'pattern']);
    const type = format === undefined ? 'text' : formats.get(format);
    if (type === undefined) {
      this.refuse(`${path}.format`, `Expected one of ${[...formats.keys()].join(', ')}`);
      return {};
    }
    // Dates have one length and one form, which the pattern beside their format spells out.
    if (type === 'date' || type === 'datetime' || type === 'time') return { type };
    return {
      type,
      ...(typeof minLength === 'number' && minLength > 0 && { minLength }),
      ...(typeof maxLength === 'number' && { maxLength }),
      ...this.#patternOf(pattern, type),
    };
  }

  /** JSON Schema looks for a pattern anywhere, a field over the whole text. */
  #patternOf(pattern: unknown, type: string): Schema {
    if (typeof pattern !== 'string') return {};
    // The check of the definition refuses it, at its place.
    if (pattern.length > formLimits.pattern) return { pattern };
    // Zod's pattern of an email looks ahead, which RE2 can't: that no dot begins an address or follows another. Every
    // field of the type `email` checks that.
    const own = type === 'email' ? pattern.replace('(?!\\.)(?!.*\\.\\.)', '') : pattern;
    return { pattern: isWhole(own) ? own.slice(1, -1) : `(?s:.*)(?:${own})(?s:.*)` };
  }

  #readNumber(schema: Schema, path: string): Schema {
    const { type, minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = schema;
    const known = ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf', 'format'];
    this.refuseUnknown(schema, path, ['type', ...known]);
    const whole = type === 'integer';
    const beyond = (bound: unknown, keyword: string, by: number) => {
      if (bound === undefined) return undefined;
      if (whole && typeof bound === 'number') return by > 0 ? Math.floor(bound) + 1 : Math.ceil(bound) - 1;
      return this.refuse(
        `${path}.${keyword}`,
        'Only a bound that is allowed itself can be asked of a number',
      );
    };
    const min = tighter(Math.max, bound(minimum), beyond(exclusiveMinimum, 'exclusiveMinimum', 1));
    const max = tighter(Math.min, bound(maximum), beyond(exclusiveMaximum, 'exclusiveMaximum', -1));
    if (whole && multipleOf !== undefined && !Number.isInteger(multipleOf)) {
      this.refuse(`${path}.multipleOf`, 'Expected a whole number');
    }
    return {
      type: 'number',
      ...(min !== undefined && { min }),
      ...(max !== undefined && { max }),
      ...(whole || multipleOf !== undefined ? { step: multipleOf ?? 1 } : {}),
    };
  }

  #readArray(schema: Schema, path: string): Schema {
    const { items, minItems, maxItems } = schema;
    this.refuseUnknown(schema, path, ['type', 'items', 'minItems', 'maxItems', 'uniqueItems']);
    const item = isObject(items) ? this.resolve(items, `${path}.items`) : {};
    const options = this.#optionsOf(item, `${path}.items`);
    if (options === undefined) this.refuse(`${path}.items`, 'Only arrays of an enum of texts can be asked');
    return {
      type: 'multi_select',
      options: options ?? [],
      ...(typeof minItems === 'number' && { minItems }),
      ...(typeof maxItems === 'number' && { maxItems }),
    };
  }

  /** The choices of an enum, a constant, or constants with titles; undefined for another schema. */
  #optionsOf(schema: Schema, path: string): Schema[] | undefined {
    const { enum: values, const: only, oneOf, anyOf } = schema;
    const titled = [oneOf, anyOf].find(
      (choices): choices is unknown[] =>
        Array.isArray(choices) && choices.every((one) => isObject(one) && Object.hasOwn(one, 'const')),
    );
    for (const one of titled ?? []) if (isObject(one)) this.refuseUnknown(one, path, ['const', 'type']);
    const found = titled
      ? titled.map((one) => (isObject(one) ? { value: one.const, label: one.title ?? one.const } : {}))
      : (Array.isArray(values) ? values : only === undefined ? undefined : [only])?.map((value) => ({
          value,
          label: value,
        }));
    const isText = schema.type === undefined || schema.type === 'string';
    const isOne = enumKeywords.filter((keyword) => schema[keyword] !== undefined).length <= 1;
    if (found !== undefined && (!isText || !isOne || found.some(({ value }) => typeof value !== 'string'))) {
      this.refuse(path, 'Only one enum, of texts, can be asked');
      return [];
    }
    return found;
  }
}

/** Whether a pattern begins with `^`, ends with `$`, and has no alternatives outside of groups. */
function isWhole(pattern: string): boolean {
  let depth = 0;
  let isAlternative = false;
  for (const [token] of pattern.matchAll(/\\.|\[\^?\]?(?:\\(?:.|$)|[^\]\\])*(?:\]|$)|[()|]/gs)) {
    if (token === '(') depth += 1;
    else if (token === ')') depth -= 1;
    else if (token === '|' && depth === 0) isAlternative = true;
  }
  return /^\^.*(?<!\\)\$$/s.test(pattern) && !isAlternative;
}

/** Zod's bounds of every whole number are those of every number here. */
function bound(value: unknown): unknown {
  return typeof value === 'number' && Math.abs(value) >= Number.MAX_SAFE_INTEGER ? undefined : value;
}

/** Of two bounds the one that leaves fewer numbers. */
function tighter(choose: (...bounds: number[]) => number, one: unknown, other: unknown): unknown {
  return typeof one === 'number' && typeof other === 'number' ? choose(one, other) : (one ?? other);
}

function textsOf(texts: Schema): Schema {
  return Object.fromEntries(
    Object.entries(texts).filter(([, text]) => typeof text === 'string' && text !== ''),
  );
}

const fieldId = /^[a-zA-Z][a-zA-Z0-9_-]{0,63}$/;

const formats = new Map<unknown, string>([
  ['date', 'date'],
  ['date-time', 'datetime'],
  ['time', 'time'],
  ['email', 'email'],
  ['uri', 'url'],
]);

const enumKeywords = ['enum', 'const', 'oneOf', 'anyOf'];

/** With more, a list that opens is easier to read. */
const FEW_OPTIONS = 6;

/** The place in a schema of what is wrong at a place of the definition that was made of it. */
export function schemaPathOf(path: string, { fields }: Schema): string {
  const [list, index, attribute, ...rest] = path.split('.');
  const field =
    list === 'fields' && index !== undefined && Array.isArray(fields) ? fields[Number(index)] : undefined;
  if (!isObject(field)) return attributes.get(list ?? '') ?? path;
  const keyword = attribute === undefined ? [] : [attributes.get(attribute) ?? attribute, ...rest];
  return ['properties', String(field.id), ...keyword].join('.');
}

const attributes = new Map([
  ['name', 'title'],
  ['fields', 'properties'],
  ['label', 'title'],
  ['defaultValue', 'default'],
  ['options', 'enum'],
  ['min', 'minimum'],
  ['max', 'maximum'],
  ['step', 'multipleOf'],
]);

export type SchemaResult = { ok: true; definition: Schema } | { ok: false; violations: Violation[] };

export type Schema = Record<string, unknown>;
