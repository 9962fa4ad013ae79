import { isDeepStrictEqual } from 'node:util';
import { fieldSchema } from '../fields/field.ts';
import type { FormFacts } from '../fields/field-type.ts';
import { isObject } from '../json/json.ts';
import type { FormDefinition } from './definition.ts';
import { normalizeField } from './field-rules.ts';
import { settingsSchema } from './settings.ts';

/**
 * A checked definition without what the check fills in: the same for a definition that spells defaults out and one
 * that leaves them out, and in a later version that has more defaults.
 */
export function withoutDefaults({ fields, settings, ...rest }: FormDefinition, form: FormFacts): object {
  return {
    ...rest,
    fields: fields.map((field) => {
      const { id, type } = field;
      return { id, type, ...difference(field, normalizeField(fieldSchema.parse({ id, type }), form)) };
    }),
    settings: difference(settings, settingsSchema.parse({})),
  };
}

/** What of an object another has not, or has otherwise; of objects in it, the same. */
function difference(object: object, other: object): object {
  const known = new Map<string, unknown>(Object.entries(other));
  const entries = Object.entries(object).flatMap(([key, value]: [string, unknown]) => {
    const standard = known.get(key);
    if (isDeepStrictEqual(value, standard)) return [];
    return [[key, isObject(value) && isObject(standard) ? difference(value, standard) : value]];
  });
  return Object.fromEntries(entries);
}
