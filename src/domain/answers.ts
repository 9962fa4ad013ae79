import type { FormDefinition } from './definition.ts';
import type { Json } from './json.ts';
import type { Violation } from './violations.ts';

/** Prepares a definition for checking answers: once per version, then a few microseconds a call. */
export function compileForm(_definition: FormDefinition): CompiledForm {
  throw new Error('not there yet');
}

/** Lays answers over each other, lowest first: a present key wins, also with null or an empty answer. */
export function mergeAnswers(...layers: (Answers | undefined)[]): Answers {
  return Object.assign({}, ...layers);
}

/** Answers keyed by field id, in the order of the fields. */
export type Answers = { [fieldId: string]: Json };

export type CompiledForm = {
  definition: FormDefinition;
  /** Checks answers and gives them back clean, in the order of the fields, or names every problem. */
  checkAnswers(answers: unknown, options?: AnswersOptions): AnswersResult;
};

export type AnswersOptions = {
  /** The first part of each violation's path; `answers` if absent. */
  root?: 'answers' | 'prefill';
  /**
   * False for partial answers and prefill: each given one must be valid, none is required, no
   * default fills in, nothing is dropped, and an empty answer stays as null, to clear what lies
   * below it. True if absent.
   */
  required?: boolean;
  /**
   * What a session already holds (prefill, partial answers over it). The answers are laid over it,
   * and then an empty one clears: not even a default fills in.
   */
  base?: Answers;
};

export type AnswersResult = { ok: true; answers: Answers } | { ok: false; violations: Violation[] };
