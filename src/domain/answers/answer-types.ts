import type { Field } from '../definition/field.ts';
import { isScalar } from '../json.ts';
import { textProblem } from '../text.ts';
import { type AnswerCheck, wrongType } from './answer-check.ts';
import { choiceCheck, choicesCheck } from './answer-choice.ts';
import { fileCheck } from './answer-file.ts';
import { numberCheck } from './answer-number.ts';
import { emailCheck, phoneCheck, textCheck, urlCheck } from './answer-text.ts';
import { timeCheck } from './answer-time.ts';

/**
 * Prepares the check of one field's answers. What it is given is never empty.
 *
 * Written by hand rather than with Zod: this runs for every answer of every submission.
 */
export function answerCheck(field: Field): AnswerCheck {
  switch (field.type) {
    case 'text':
    case 'textarea':
      return textCheck(field);
    case 'email':
      return emailCheck(field);
    case 'url':
      return urlCheck(field);
    case 'phone':
      return phoneCheck(field);
    case 'number':
      return numberCheck(field);
    case 'boolean':
      return checkBoolean;
    case 'checkbox':
      return field.required ? checkTicked : checkBoolean;
    case 'date':
    case 'time':
    case 'datetime':
      return timeCheck(field, field.type);
    case 'select':
    case 'radio':
      return choiceCheck(field);
    case 'multi_select':
      return choicesCheck(field);
    case 'hidden':
      return checkScalar;
    case 'file':
      return fileCheck(field);
    default:
      return field.type satisfies never;
  }
}

const checkBoolean: AnswerCheck = (answer, path, violations) => {
  if (typeof answer !== 'boolean') violations.push(wrongType(path, 'boolean', answer));
};

const checkTicked: AnswerCheck = (answer, path, violations) => {
  checkBoolean(answer, path, violations);
  if (answer === false) violations.push({ path, code: 'custom', message: 'Must be checked' });
};

const checkScalar: AnswerCheck = (answer, path, violations) => {
  if (!isScalar(answer)) {
    violations.push(wrongType(path, 'text, number or boolean', answer));
  } else if (typeof answer === 'string') {
    const problem = textProblem(answer);
    if (problem !== undefined) violations.push({ path, code: 'invalid_string', message: problem });
    if (answer.length > MAX_HIDDEN_LENGTH) {
      violations.push({ path, code: 'too_big', message: `At most ${MAX_HIDDEN_LENGTH} characters` });
    }
  }
};

/** The same as of a text field that names no limit. */
export const MAX_HIDDEN_LENGTH = 10_000;
