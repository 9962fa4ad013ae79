import { type Violation, wrongType } from '../errors/violations.ts';
import type { AnswerCheck, AttributesOf, FieldTypeRules } from './field-type.ts';
import { labelOf, listProblems, optionAttributes, optionProblems, valuesOf } from './select.ts';

/** All options of the field in an order, most important first. */
export const ranking: FieldTypeRules<RankingField> = {
  attributes: optionAttributes,
  problems: (field, sent, path) => [...optionProblems(field, sent, path), ...countProblems(field, path)],
  check: checkOrder,
  answerType: () => 'repeated string',
  jsonSchema: (field) => {
    const values = valuesOf(field);
    const [minItems, maxItems] = [values.length, values.length];
    return { type: 'array', items: { type: 'string', enum: values }, uniqueItems: true, minItems, maxItems };
  },
  sample: valuesOf,
  inWords: (answer, field) =>
    [answer]
      .flat()
      .map((choice, index) => `${index + 1}. ${labelOf(field, choice)}`)
      .join('\n'),
  readInput: (values) => values.filter((value) => value !== ''),
  control: 'ranking',
  kind: 'list',
  ordersOptions: true,
};

function countProblems({ options }: RankingField, path: string): Violation[] {
  const { length } = options ?? [];
  if (options === undefined || (length >= MIN_OPTIONS && length <= MAX_OPTIONS)) return [];
  const code = length < MIN_OPTIONS ? 'too_small' : 'too_big';
  const message = `A ranking has ${MIN_OPTIONS} to ${MAX_OPTIONS} options`;
  return [{ path: `${path}.options`, code, message }];
}

function checkOrder(field: RankingField): AnswerCheck {
  const values = new Set(valuesOf(field));
  return (answer, path) => {
    if (!Array.isArray(answer)) return [wrongType(path, 'array', answer)];
    const problems = listProblems(answer, values, path);
    if (answer.length === values.size) return problems;
    const code = answer.length < values.size ? 'too_small' : 'too_big';
    const message = `Must have each of the ${values.size} options once`;
    return [{ path, code, message }, ...problems];
  };
}

const MIN_OPTIONS = 2;

/** More than people can put in order. */
const MAX_OPTIONS = 30;

type RankingField = AttributesOf<typeof optionAttributes>;
