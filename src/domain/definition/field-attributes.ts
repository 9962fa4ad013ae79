import { DEFAULT_MAX_LENGTH } from '../answers/answer-text.ts';
import { isEmpty } from '../conditions/condition.ts';
import { type Field, type FieldType, MAX_FILE_BYTES, type ParsedField } from './field.ts';

/** Whether an attribute means anything on fields of this type. */
export function belongsTo(attribute: string, type: FieldType): boolean {
  const types = owners[attribute];
  return types === undefined || types.includes(type);
}

/** Whether fields of this type are answered by choosing. */
export function hasOptions(type: FieldType): boolean {
  return belongsTo('options', type);
}

/** Fills in the defaults that depend on the field: its label by the id, its limits by the type. */
export function normalizeField(field: ParsedField): Field {
  const {
    id,
    type,
    label = humanLabel(id),
    description,
    placeholder,
    agentHint,
    defaultValue,
    ...rest
  } = field;
  return {
    id,
    type,
    label,
    ...(description && { description }),
    ...(placeholder && { placeholder }),
    ...(agentHint && { agentHint }),
    ...rest,
    hidden: rest.hidden || type === 'hidden',
    ...(defaultValue !== undefined && !isEmpty(defaultValue) && { defaultValue }),
    ...(belongsTo('maxLength', type) && { maxLength: rest.maxLength ?? DEFAULT_MAX_LENGTH }),
    ...(type === 'file' && { maxBytes: rest.maxBytes ?? MAX_FILE_BYTES, maxFiles: rest.maxFiles ?? 1 }),
  };
}

/** `first_name`, `first-name` and `firstName` read "First name". */
function humanLabel(id: string): string {
  const words = id
    .replace(/([a-z0-9])([A-Z])/g, (_, end: string, start: string) => `${end} ${start.toLowerCase()}`)
    .replace(/[_-]+/g, ' ')
    .trim();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

const texts: FieldType[] = ['text', 'textarea', 'email', 'url', 'phone'];
const ordered: FieldType[] = ['number', 'date', 'time', 'datetime'];

/** The types that an attribute belongs to; attributes that are not here belong to all. */
const owners: Readonly<Record<string, readonly FieldType[] | undefined>> = Object.assign(
  Object.create(null),
  {
    options: ['select', 'radio', 'multi_select'],
    minLength: texts,
    maxLength: texts,
    pattern: texts,
    patternMessage: texts,
    min: ordered,
    max: ordered,
    step: ['number'],
    minItems: ['multi_select'],
    maxItems: ['multi_select'],
    accept: ['file'],
    maxBytes: ['file'],
    maxFiles: ['file'],
  } satisfies Record<string, readonly FieldType[]>,
);
