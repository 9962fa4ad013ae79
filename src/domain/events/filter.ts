import { required, type Violation } from '../errors/violations.ts';
import { textProblem } from '../json/json-problems.ts';
import { formLimits, MAX_SOURCE_LENGTH } from '../limits/limits.ts';

/** What is wrong with a filter, at `filter`. */
export function filterProblems({ source, fieldId, value }: WebhookFilter): Violation[] {
  return [
    ...textViolations('filter.source', source, MAX_SOURCE_LENGTH),
    ...textViolations('filter.field_id', fieldId, formLimits.fieldId),
    ...(typeof value === 'string' ? textViolations('filter.value', value, VALUE_LENGTH) : []),
    ...(fieldId !== undefined && value === undefined ? [required('filter.value')] : []),
    ...(fieldId === undefined && value !== undefined ? [required('filter.field_id')] : []),
  ];
}

function textViolations(path: string, text: string | undefined, max: number): Violation[] {
  if (text === undefined) return [];
  const problem = textProblem(text);
  if (problem !== undefined) return [{ path, code: 'custom', message: problem }];
  return text.length <= max ? [] : [{ path, code: 'too_big', message: `Expected at most ${max} characters` }];
}

/** Of a text that an answer is compared with, in characters. */
const VALUE_LENGTH = 1000;

/**
 * Which submissions a webhook receives: those with this source, and whose answer to a field is a value, or has it among
 * others. What is absent is not asked for.
 */
export type WebhookFilter = { source?: string; fieldId?: string; value?: string | number | boolean };
