import { fieldIdOf, type Violation } from '../errors/violations.ts';
import type { JsonObject } from '../json/json.ts';
import { type Answers, mergeAnswers } from './answers.ts';

/** The answers that a submission begins with: what was saved, over the prefill. */
export function savedAnswers({ prefill, partialAnswers }: HeldAnswers): Answers {
  return mergeAnswers(prefill, partialAnswers ?? {});
}

/** An object without the properties that are null: in answers, those that are cleared. */
export function withoutNulls(object: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== null));
}

/** Answers without those that something is wrong with. */
export function withoutRefused(answers: Answers, violations: readonly Violation[]): Answers {
  const refused = new Set(violations.map(({ path }) => fieldIdOf(path)));
  return Object.fromEntries(Object.entries(answers).filter(([id]) => !refused.has(id)));
}

type HeldAnswers = { prefill: Answers; partialAnswers: Answers | null };
