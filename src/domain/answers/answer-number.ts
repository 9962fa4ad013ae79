import type { Field } from '../definition/field.ts';
import { type AnswerCheck, wrongType } from './answer-check.ts';

/** A finite number between `min` and `max`, a multiple of `step`. */
export function numberCheck(field: Field): AnswerCheck {
  const { min, max, step } = field;
  return (answer, path, violations) => {
    if (typeof answer !== 'number' || !Number.isFinite(answer)) {
      violations.push(wrongType(path, 'number', answer));
      return;
    }
    if (typeof min === 'number' && answer < min) {
      violations.push({ path, code: 'too_small', message: `Must be at least ${min}` });
    }
    if (typeof max === 'number' && answer > max) {
      violations.push({ path, code: 'too_big', message: `Must be at most ${max}` });
    }
    if (step !== undefined && !isMultiple(answer, step)) {
      violations.push({ path, code: 'not_multiple_of', message: `Must be a multiple of ${step}` });
    }
  };
}

/** Binary fractions don't divide evenly (0.3 / 0.1 is below 3), so what is nearly whole is whole. */
function isMultiple(answer: number, step: number): boolean {
  const times = answer / step;
  return Math.abs(times - Math.round(times)) <= TOLERANCE * Math.max(1, Math.abs(times));
}

/** A little more than the rounding of both numbers and of their division. */
const TOLERANCE = 4 * Number.EPSILON;
