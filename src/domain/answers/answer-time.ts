import type { Field } from '../definition/field.ts';
import { compareTimes, isDate, isDatetime, isTime, type TimeType } from '../time.ts';
import { type AnswerCheck, wrongType } from './answer-check.ts';

/** A date, time or datetime as text, between `min` and `max`. */
export function timeCheck(field: Field, type: TimeType): AnswerCheck {
  const { min, max } = field;
  return (answer, path, violations) => {
    if (typeof answer !== 'string') {
      violations.push(wrongType(path, 'string', answer));
    } else if (!isTimeOf[type](answer)) {
      violations.push({ path, code: 'invalid_date', message: expected[type] });
    } else if (typeof min === 'string' && compareTimes(type, answer, min) < 0) {
      violations.push({ path, code: 'too_small', message: `Must not be before ${min}` });
    } else if (typeof max === 'string' && compareTimes(type, answer, max) > 0) {
      violations.push({ path, code: 'too_big', message: `Must not be after ${max}` });
    }
  };
}

/** Whether a text is a time of this type. */
export const isTimeOf: Record<TimeType, (text: string) => boolean> = {
  date: isDate,
  time: isTime,
  datetime: isDatetime,
};

/** What is said of a text that is no time of this type. */
export const expected: Record<TimeType, string> = {
  date: 'Must be a date of the form YYYY-MM-DD',
  time: 'Must be a time of the form HH:MM or HH:MM:SS',
  datetime: 'Must be a date and time with offset, such as 2030-01-31T09:00:00Z',
};
