import { z } from 'zod';
import { custom, type Violation, wrongType } from '../errors/violations.ts';
import { inexactMessage, isInexact } from '../json/json.ts';
import { optional } from '../json/optional.ts';
import type { AnswerCheck, AttributesOf, FieldTypeRules } from './field-type.ts';
import { numberText, readings, readNumber } from './number-text.ts';

const bound = z.union([z.number(), z.string().max(64)], { error: 'Expected a number or a date as text' });

/** The least and the greatest answer, of numbers and of times. */
export const boundAttributes = {
  min: optional(
    bound,
    'The least number, or the earliest date, time or datetime as text; of a scale 0 or 1.',
  ),
  max: optional(
    bound,
    'The greatest number, or the latest date, time or datetime as text; of a rating or a scale at most 10.',
  ),
};

export const numberAttributes = {
  ...boundAttributes,
  step: optional(z.number().positive(), 'number: the answer is a multiple of it.'),
};

/** A finite number between `min` and `max`, a multiple of `step`. */
export const number: FieldTypeRules<NumberField> = {
  attributes: numberAttributes,
  problems: (field, _sent, path) =>
    boundProblems(field, path, refuseBound, (left, right) => Number(left) - Number(right)),
  check: checkNumber,
  answerType: (field) => (isInt32(field) ? 'int32' : 'double'),
  jsonSchema: ({ min, max, step }) => ({
    type: 'number',
    ...(typeof min === 'number' && { minimum: min }),
    ...(typeof max === 'number' && { maximum: max }),
    ...(step !== undefined && { multipleOf: step }),
  }),
  sample: ({ min, max, step }) => min ?? max ?? step ?? 1,
  inWords: (answer, _field, locale) =>
    typeof answer === 'number' ? numberText(answer, locale) : String(answer),
  readInput: (values, _field, _part, typed) => readNumber(values.at(-1) ?? '', typed?.language),
  control: 'line',
  input: 'number',
  kind: 'number',
  toldBySchema: true,
};

function checkNumber({ min, max, step }: NumberField): AnswerCheck {
  return (answer, path) => {
    if (typeof answer !== 'number' || !Number.isFinite(answer)) return [notANumber(answer, path)];
    if (isInexact(answer)) return [{ path, code: 'invalid_type', message: inexactMessage }];
    const problems: Violation[] = [];
    if (typeof min === 'number' && answer < min) {
      problems.push({ path, code: 'too_small', message: `Must be at least ${min}` });
    }
    if (typeof max === 'number' && answer > max) {
      problems.push({ path, code: 'too_big', message: `Must be at most ${max}` });
    }
    if (step !== undefined && !isMultiple(answer, step)) {
      problems.push({ path, code: 'not_multiple_of', message: `Must be a multiple of ${step}` });
    }
    return problems;
  };
}

/** A text that can be read as several numbers is none of them: its sender is told which. */
function notANumber(answer: unknown, path: string): Violation {
  const violation = wrongType(path, 'number', answer);
  const numbers = typeof answer === 'string' ? readings(answer) : [];
  const meaning = numbers.length < 2 ? '' : ` that can mean ${numbers.join(' or ')}`;
  return { ...violation, message: `${violation.message}${meaning}` };
}

/** Whether all answers are whole numbers of 32 bits. */
function isInt32({ min, max, step }: NumberField): boolean {
  const [least, greatest] = [min, max].map((bound) => (typeof bound === 'number' ? bound : Number.NaN));
  return (
    Number.isInteger(step) &&
    Number.isInteger(least) &&
    least !== undefined &&
    greatest !== undefined &&
    least >= -(2 ** 31) &&
    greatest <= 2 ** 31 - 1
  );
}

/** Binary fractions don't divide evenly (0.3 / 0.1 is below 3), so what is nearly whole is whole. */
export function isMultiple(answer: number, step: number): boolean {
  if (Number.isInteger(step)) return answer % step === 0;
  const times = answer / step;
  return Math.abs(times - Math.round(times)) <= TOLERANCE * Math.max(1, Math.abs(times));
}

/** A little more than the rounding of both numbers and of their division. */
const TOLERANCE = 4 * Number.EPSILON;

function refuseBound(bound: string | number, path: string): Violation[] {
  return typeof bound === 'number' ? [] : [wrongType(path, 'number', bound)];
}

type NumberField = AttributesOf<typeof numberAttributes>;

/**
 * What is wrong with the bounds of a field. `refuse` says what is wrong with one bound by itself; two good ones are
 * compared by `compare`, whose result is above zero if the first is greater.
 */
export function boundProblems(
  { min, max }: AttributesOf<typeof boundAttributes>,
  path: string,
  refuse: (bound: Bound, path: string) => Violation[],
  compare: (left: Bound, right: Bound) => number,
): Violation[] {
  const problems = [
    ...(min === undefined ? [] : refuse(min, `${path}.min`)),
    ...(max === undefined ? [] : refuse(max, `${path}.max`)),
  ];
  if (problems.length > 0 || min === undefined || max === undefined || compare(min, max) <= 0)
    return problems;
  return [custom(`${path}.max`, 'max must not be below min')];
}

type Bound = z.output<typeof bound>;
