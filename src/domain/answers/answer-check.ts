import type { Json } from '../json.ts';
import { kindOf, type Violation } from '../violations.ts';

/** Adds what is wrong with an answer to `violations`. The answer is never an empty one. */
export type AnswerCheck = (answer: Json, path: string, violations: Violation[]) => void;

/** An answer of another JSON type than the field's. */
export function wrongType(path: string, expected: string, answer: unknown): Violation {
  return { path, code: 'invalid_type', message: `Expected ${expected}, received ${kindOf(answer)}` };
}
