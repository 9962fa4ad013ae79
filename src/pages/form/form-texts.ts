import type { Answers } from './steps.ts';

/** Answers as the texts of inputs. */
export function textsOf(answers: Answers): Map<string, readonly string[]> {
  return new Map(Object.entries(answers).map(([id, answer]) => [id, listOf(answer).map(textOf)]));
}

function textOf(answer: unknown): string {
  if (typeof answer === 'object' && answer !== null) {
    return 'upload_id' in answer ? String(answer.upload_id) : '';
  }
  return typeof answer === 'string' || typeof answer === 'number' || typeof answer === 'boolean'
    ? String(answer)
    : '';
}

/** The names of uploaded files among the answers, by upload id. */
export function fileNamesOf(answers: Answers): Map<string, string> {
  const files = Object.values(answers)
    .flatMap(listOf)
    .filter((answer) => typeof answer === 'object' && answer !== null && 'filename' in answer);
  return new Map(files.map((file) => [textOf(file), String(Reflect.get(Object(file), 'filename'))]));
}

function listOf(answer: unknown): unknown[] {
  return Array.isArray(answer) ? answer : [answer];
}
