import { z } from 'zod';
import { custom, required, type Violation, wrongType } from '../errors/violations.ts';
import type { Json, JsonObject } from '../json/json.ts';
import { optional } from '../json/optional.ts';
import { formLimits } from '../limits/limits.ts';
import { isBlank } from '../text/typed-signs.ts';
import {
  type AnswerCheck,
  type AttributesOf,
  atLeast,
  type FieldTypeRules,
  noViolations,
} from './field-type.ts';
import { plainTextProblems, readText, textUpTo } from './text.ts';

export const optionSchema = z
  .strictObject({
    label: textUpTo(formLimits.label).describe('What the human reads.'),
    value: textUpTo(200).describe('The answer.'),
  })
  .describe('One choice.');

export const optionAttributes = {
  options: optional(
    z.array(optionSchema).min(1).max(formLimits.options),
    'The choices of `select`, `radio`, `multi_select`, `ranking` (2 to 30) and `matrix` (up to 20); values are unique.',
  ),
};

export const choiceAttributes = {
  ...optionAttributes,
  allowOther: optional(
    z.boolean(),
    'select, radio, multi_select: whether one text of one’s own may be answered.',
  ),
};

export const multiSelectAttributes = {
  ...choiceAttributes,
  minItems: optional(z.int().min(0).max(100_000), 'multi_select: the fewest choices.'),
  maxItems: optional(z.int().min(1), 'multi_select: the most choices.'),
};

/** One of the field's options, or a text of one's own if it allows other. */
export const select: FieldTypeRules<SelectField> = {
  attributes: choiceAttributes,
  problems: (field, sent, path) => optionProblems(field, sent, path),
  check: checkChoice,
  answerType: () => 'string',
  jsonSchema: choiceSchema,
  sample: ({ options = [] }) => options[0]?.value,
  inWords: (answer, field) => labelOf(field, answer),
  readInput: (values, { allowOther }, part) => {
    const text = readText(values);
    if (allowOther !== true) return text;
    return (text === OTHER_CHOSEN ? '' : text) || readText(part(OTHER)).trim();
  },
  parts: partsOf,
  toInputs: (answer, field) => {
    const text = typeof answer === 'string' ? answer : '';
    return isOption(field, text) ? { '': [text] } : { '': [''], [OTHER]: [text] };
  },
  control: 'select',
  kind: 'text',
  toldBySchema: true,
  choosesOptions: true,
};

/** As `select`, with all its options in view. */
export const radio: FieldTypeRules<SelectField> = { ...select, control: 'radios' };

/** A list of different options of the field, between `minItems` and `maxItems` of them. */
export const multiSelect: FieldTypeRules<MultiSelectField> = {
  attributes: multiSelectAttributes,
  problems: (field, sent, path) => [...optionProblems(field, sent, path), ...countProblems(field, path)],
  check: checkChoices,
  answerType: () => 'repeated string',
  jsonSchema: (field, needed) => ({
    type: 'array',
    items: choiceSchema(field),
    uniqueItems: true,
    ...(field.allowOther === true && {
      contains: { not: { enum: valuesOf(field) } },
      minContains: 0,
      maxContains: 1,
    }),
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
  readInput: (values, field, part) => [
    ...values.filter((value) => value !== ''),
    ...partsOf(field).flatMap((name) => [readText(part(name)).trim()].filter((text) => !isBlank(text))),
  ],
  parts: partsOf,
  toInputs: (answer, field) => {
    const choices = [answer].flat().map(String);
    return {
      '': choices.filter((choice) => isOption(field, choice)),
      [OTHER]: choices.filter((choice) => !isOption(field, choice)),
    };
  },
  control: 'checkboxes',
  kind: 'list',
  toldBySchema: true,
  choosesOptions: true,
};

/** What is wrong with the options of a field that must have some. */
export function optionProblems(
  { options = [] }: OptionsField,
  sent: Readonly<Record<string, unknown>>,
  path: string,
): Violation[] {
  return choiceProblems('options', options, sent, path);
}

/** What is wrong with the options, or the rows, of a field: there must be some, and no two with the same value. */
export function choiceProblems(
  attribute: 'options' | 'rows',
  choices: readonly { value: string }[],
  sent: Readonly<Record<string, unknown>>,
  path: string,
): Violation[] {
  if (sent[attribute] === undefined) return [required(`${path}.${attribute}`)];
  const seen = new Set<string>();
  return choices.flatMap(({ value }, index) => {
    const isFirst = !seen.has(value);
    seen.add(value);
    if (isFirst) return [];
    return [custom(`${path}.${attribute}.${index}.value`, `The values of ${attribute} must be unique`)];
  });
}

function countProblems(
  { minItems = 0, maxItems, options, allowOther }: MultiSelectField,
  path: string,
): Violation[] {
  const problems: Violation[] = [];
  if (maxItems !== undefined && minItems > maxItems) {
    problems.push(custom(`${path}.maxItems`, 'maxItems must not be below minItems'));
  }
  if (options !== undefined && minItems > options.length + (allowOther === true ? 1 : 0)) {
    problems.push(custom(`${path}.minItems`, 'minItems must not be above the number of options'));
  }
  return problems;
}

function checkChoice(field: SelectField): AnswerCheck {
  const values = new Set(valuesOf(field));
  return (answer, path) => {
    if (typeof answer !== 'string') return [wrongType(path, 'string', answer)];
    if (values.has(answer)) return noViolations;
    return field.allowOther ? otherProblems(answer, path) : [notAnOption(path)];
  };
}

function checkChoices(field: MultiSelectField): AnswerCheck {
  const values = new Set(valuesOf(field));
  const { minItems = 0, allowOther = false } = field;
  const { maxItems = values.size + (allowOther ? 1 : 0) } = field;
  return (answer, path) => {
    if (!Array.isArray(answer)) return [wrongType(path, 'array', answer)];
    const problems = listProblems(answer, values, path, allowOther);
    if (answer.length < minItems) {
      problems.unshift({ path, code: 'too_small', message: `Must have at least ${choices(minItems)}` });
    } else if (answer.length > maxItems) {
      problems.unshift({ path, code: 'too_big', message: `Must have at most ${choices(maxItems)}` });
    }
    return problems;
  };
}

/** What is wrong with the items of a list of different options; one may be a text if it allows other. */
export function listProblems(
  answer: readonly Json[],
  values: ReadonlySet<string>,
  path: string,
  allowOther = false,
): Violation[] {
  const seen = new Set<string>();
  let others = 0;
  return answer.slice(0, values.size + 2).flatMap((choice, index) => {
    const place = `${path}.${index}`;
    if (typeof choice !== 'string') return [wrongType(place, 'string', choice)];
    if (seen.has(choice)) return [custom(place, 'Must not be chosen twice')];
    seen.add(choice);
    if (values.has(choice)) return [];
    others += 1;
    return allowOther && others === 1 ? otherProblems(choice, place) : [notAnOption(place)];
  });
}

function otherProblems(text: string, path: string): Violation[] {
  if (text === '') return [{ path, code: 'too_small', message: 'Must have at least 1 character' }];
  return plainTextProblems(text, path, MAX_OTHER);
}

function choiceSchema(field: SelectField): JsonObject {
  const values = valuesOf(field);
  if (field.allowOther !== true) return { type: 'string', enum: values };
  return { type: 'string', anyOf: [{ enum: values }, { minLength: 1, maxLength: MAX_OTHER }] };
}

function partsOf({ allowOther }: SelectField): string[] {
  return allowOther === true ? [OTHER] : [];
}

function isOption({ options = [] }: OptionsField, answer: unknown): boolean {
  return options.some(({ value }) => value === answer);
}

/** The values of a field's options. */
export function valuesOf({ options = [] }: OptionsField): string[] {
  return options.map(({ value }) => value);
}

/** The label of an option; what is none reads as it is. */
export function labelOf({ options = [] }: OptionsField, choice: unknown): string {
  return options.find(({ value }) => value === choice)?.label ?? String(choice);
}

function choices(count: number): string {
  return count === 1 ? '1 choice' : `${count} choices`;
}

/** An answer that is not among the options. */
export function notAnOption(path: string): Violation {
  return { path, code: 'invalid_enum_value', message: 'Must be one of the options' };
}

/** The name of the input of a text beside the options. */
export const OTHER = 'other';

/** The value of a radio button, or in a list, that stands for such a text. It can't be seen, so it is no answer. */
export const OTHER_CHOSEN = '\u2060';

/** As many characters as the value of an option has. */
export const MAX_OTHER = 200;

type OptionsField = AttributesOf<typeof optionAttributes>;
type SelectField = AttributesOf<typeof choiceAttributes>;
type MultiSelectField = AttributesOf<typeof multiSelectAttributes>;
