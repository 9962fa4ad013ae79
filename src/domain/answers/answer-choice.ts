import type { Field } from '../definition/field.ts';
import { type AnswerCheck, wrongType } from './answer-check.ts';

/** One of the field's options. */
export function choiceCheck(field: Field): AnswerCheck {
  const values = valuesOf(field);
  return (answer, path, violations) => {
    if (typeof answer !== 'string') violations.push(wrongType(path, 'string', answer));
    else if (!values.has(answer)) violations.push({ path, code: 'invalid_enum_value', message: notAnOption });
  };
}

/** A list of different options of the field, between `minItems` and `maxItems` of them. */
export function choicesCheck(field: Field): AnswerCheck {
  const values = valuesOf(field);
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

function valuesOf(field: Field): Set<string> {
  return new Set((field.options ?? []).map(({ value }) => value));
}

function choices(count: number): string {
  return count === 1 ? '1 choice' : `${count} choices`;
}

const notAnOption = 'Must be one of the options';
