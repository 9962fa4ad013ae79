import { type Violation, wrongType } from '../errors/violations.ts';
import { inexactMessage, isInexact, isScalar } from '../json/json.ts';
import { textProblem } from '../json/json-problems.ts';
import { yesOrNo } from './boolean.ts';
import { type AnswerCheck, atLeast, type FieldTypeRules, noViolations } from './field-type.ts';
import { DEFAULT_MAX_LENGTH, readText, sampleText } from './text.ts';

/** Any text, number or boolean, which comes by prefill or default and is shown to nobody. */
export const hidden: FieldTypeRules<{ hidden: boolean }> = {
  attributes: {},
  defaults: () => ({ hidden: true }),
  check: () => checkScalar,
  answerType: () => 'google.protobuf.Value',
  jsonSchema: (_field, needed) => ({
    type: ['string', 'number', 'boolean'],
    minLength: atLeast(0, needed),
    maxLength: DEFAULT_MAX_LENGTH,
  }),
  sample: () => sampleText({}),
  inWords: (answer, _field, locale) =>
    typeof answer === 'boolean' ? yesOrNo(answer, locale) : String(answer),
  readInput: readText,
  control: 'line',
  kind: 'text',
};

const checkScalar: AnswerCheck = (answer, path) => {
  if (!isScalar(answer)) return [wrongType(path, 'text, number or boolean', answer)];
  if (typeof answer === 'number' && isInexact(answer)) {
    return [{ path, code: 'invalid_type', message: inexactMessage }];
  }
  if (typeof answer !== 'string') return noViolations;
  const problems: Violation[] = [];
  const problem = textProblem(answer);
  if (problem !== undefined) problems.push({ path, code: 'invalid_string', message: problem });
  if (answer.length > DEFAULT_MAX_LENGTH) {
    problems.push({ path, code: 'too_big', message: `At most ${DEFAULT_MAX_LENGTH} characters` });
  }
  return problems;
};
