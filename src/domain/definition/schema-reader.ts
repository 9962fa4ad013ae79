import type { Violation } from '../errors/violations.ts';
import { isObject } from '../json/json.ts';

/**
 * Reads a JSON Schema one part after the other: follows its references, takes null out of what may be null, and
 * collects what is refused, by its path in the schema.
 */
export class SchemaReader {
  readonly violations: Violation[] = [];
  readonly root: Schema;

  constructor(root: Schema) {
    this.root = root;
  }

  /** Follows references within the schema; what stands beside one goes over what it names. */
  resolve(schema: Schema, path: string): Schema {
    let resolved = schema;
    for (let depth = 0; depth < MAX_REFERENCES; depth += 1) {
      const { $ref, allOf, ...rest } = resolved;
      const [single, ...others] = Array.isArray(allOf) ? allOf : [];
      if ($ref === undefined && (others.length > 0 || !isObject(single))) break;
      const target = $ref === undefined ? single : this.#find($ref);
      if (!isObject(target)) {
        this.refuse(path === '' ? '$ref' : `${path}.$ref`, 'Expected a reference within the schema');
        return rest;
      }
      resolved = { ...target, ...rest };
    }
    return resolved;
  }

  #find(reference: unknown): unknown {
    const names = typeof reference === 'string' ? /^#\/(\$defs|definitions)\/([^/]+)$/.exec(reference) : null;
    const [, group = '', name = ''] = names ?? [];
    const definitions = this.root[group];
    return isObject(definitions) && Object.hasOwn(definitions, name) ? definitions[name] : undefined;
  }

  /** The schema of a property that may be null, without that. */
  withoutNull(schema: Schema, path: string): Schema {
    const { anyOf, oneOf, type, enum: values, ...rest } = schema;
    const choices = [anyOf, oneOf].find(Array.isArray);
    const others = choices?.filter((one) => !isObject(one) || one.type !== 'null');
    if (choices !== undefined && others?.length === choices.length - 1 && others.length === 1) {
      const [only] = others;
      if (isObject(only)) return { ...this.resolve(only, path), ...rest };
    }
    const types = Array.isArray(type) ? type.filter((one) => one !== 'null') : [type];
    return {
      ...schema,
      ...(types.length === 1 && types[0] !== undefined && { type: types[0] }),
      ...(Array.isArray(type) && Array.isArray(values) && { enum: values.filter((value) => value !== null) }),
    };
  }

  refuseUnknown(schema: Schema, path: string, known: string[]): void {
    for (const keyword of Object.keys(schema)) {
      if (known.includes(keyword) || annotations.has(keyword)) continue;
      this.refuse(path === '' ? keyword : `${path}.${keyword}`, `"${keyword.slice(0, 64)}" can't be asked`);
    }
  }

  refuse(path: string, message: string): undefined {
    this.violations.push({ path, code: 'custom', message });
  }
}

/** Keywords that say nothing of which answers fit. */
const annotations = new Set(['$schema', '$id', '$comment', 'examples', 'deprecated', 'title', 'description']);

/** Also ends circles. */
const MAX_REFERENCES = 8;

export type Schema = Record<string, unknown>;
