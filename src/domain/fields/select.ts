import { z } from 'zod';
import { required, type Violation, wrongType } from '../violations.ts';
import { type AnswerCheck, type AttributesOf, atLeast, type FieldTypeRules } from './field-type.ts';
import { readText } from './text.ts';

const optionSchema = z
  .strictObject({
    label: z.string().min(1).max(200).describe('What the human reads.'),
    value: z.string().min(1).max(200).describe('The answer.'),
  })
  .describe('One choice.');

export const optionAttributes = {
  options: z
    .array(optionSchema)
    .min(1)
    .max(500)
    .exactOptional()
    .describe('The choices of `select`, `radio` and `multi_select`; values are unique.'),
};

export const multiSelectAttributes = {
  ...optionAttributes,
  minItems: z.int().min(0).max(100_000).exactOptional().describe('multi_select: the fewest choices.'),
  maxItems: z.int().min(1).exactOptional().describe('multi_select: the most choices.'),
};

/** One of the field's options. */
export const select: FieldTypeRules<SelectField> = {
  attributes: optionAttributes,
  problems: (field, sent, path) => optionProblems(field, sent, path),
  check: checkChoice,
  jsonSchema: (field) => ({ type: 'string', enum: valuesOf(field) }),
  sample: ({ options = [] }) => options[0]?.value,
  inWords: (answer, field) => labelOf(field, answer),
  readInput: readText,
  control: 'select',
};

/** As `select`, with all its options in view. */
export const radio: FieldTypeRules<SelectField> = { ...select, control: 'radios' };

/** A list of different options of the field, between `minItems` and `maxItems` of them. */
export const multiSelect: FieldTypeRules<MultiSelectField> = {
  attributes: multiSelectAttributes,
  problems: (field, sent, path) => [...optionProblems(field, sent, path), ...countProblems(field, path)],
  check: checkChoices,
  jsonSchema: (field, needed) => ({
    type: 'array',
    items: { type: 'string', enum: valuesOf(field) },
    uniqueItems: true,
    minItems: atLeast(field.minItems, needed),
    ...(field.maxItems !== undefined && { maxItems: field.maxItems }),
  }),
  sample: ({ options = [], minItems = 1 }) =>
    options.slice(0, Math.max(1, minItems)).map(({ value }) => value),
  inWords: (answer, field) =>
    [answer]
      .flat()
      .map((choice) => labelOf(field, choice))
      .join(', '),
  readInput: (values) => values.filter((value) => value !== ''),
  control: 'checkboxes',
};

function optionProblems(
  { options = [] }: SelectField,
  sent: Readonly<Record<string, unknown>>,
  path: string,
): Violation[] {
  if (sent.options === undefined) return [required(`${path}.options`)];
  const seen = new Set<string>();
  return options.flatMap(({ value }, index): Violation[] => {
    if (!seen.has(value)) {
      seen.add(value);
      return [];
    }
    const message = 'The values of options must be unique';
    return [{ path: `${path}.options.${index}.value`, code: 'custom', message }];
  });
}

function countProblems({ minItems = 0, maxItems, options }: MultiSelectField, path: string): Violation[] {
  const problems: Violation[] = [];
  if (maxItems !== undefined && minItems > maxItems) {
    const message = 'maxItems must not be below minItems';
    problems.push({ path: `${path}.maxItems`, code: 'custom', message });
  }
  if (options !== undefined && minItems > options.length) {
    const message = 'minItems must not be above the number of options';
    problems.push({ path: `${path}.minItems`, code: 'custom', message });
  }
  return problems;
}

function checkChoice(field: SelectField): AnswerCheck {
  const values = new Set(valuesOf(field));
  return (answer, path, violations) => {
    if (typeof answer !== 'string') violations.push(wrongType(path, 'string', answer));
    else if (!values.has(answer)) violations.push({ path, code: 'invalid_enum_value', message: notAnOption });
  };
}

function checkChoices(field: MultiSelectField): AnswerCheck {
  const values = new Set(valuesOf(field));
  const { minItems = 0, maxItems = values.size } = field;
  return (answer, path, violations) => {
    if (!Array.isArray(answer)) {
      violations.push(wrongType(path, 'array', answer));
      return;
    }
    if (answer.length < minItems) {
      violations.push({ path, code: 'too_small', message: `Must have at least ${choices(minItems)}` });
    }
    if (answer.length > maxItems) {
      violations.push({ path, code: 'too_big', message: `Must have at most ${choices(maxItems)}` });
    }
    const seen = new Set<string>();
    for (const [index, choice] of answer.slice(0, values.size + 1).entries()) {
      const place = `${path}.${index}`;
      if (typeof choice !== 'string') violations.push(wrongType(place, 'string', choice));
      else if (!values.has(choice)) {
        violations.push({ path: place, code: 'invalid_enum_value', message: notAnOption });
      } else if (seen.has(choice)) {
        violations.push({ path: place, code: 'custom', message: 'Must not be chosen twice' });
      } else seen.add(choice);
    }
  };
}

function valuesOf({ options = [] }: SelectField): string[] {
  return options.map(({ value }) => value);
}

function labelOf({ options = [] }: SelectField, choice: unknown): string {
  return options.find(({ value }) => value === choice)?.label ?? String(choice);
}

function choices(count: number): string {
  return count === 1 ? '1 choice' : `${count} choices`;
}

const notAnOption = 'Must be one of the options';

type SelectField = AttributesOf<typeof optionAttributes>;
type MultiSelectField = AttributesOf<typeof multiSelectAttributes>;
