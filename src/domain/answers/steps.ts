import { evaluate, isEmpty } from '../conditions/condition.ts';
import { fieldIdOf, type Violation } from '../errors/violations.ts';
import type { Field } from '../fields/field.ts';
import { MAX_PAGES } from '../limits/limits.ts';

/**
 * What follows from a step that was posted: this step once more with what is wrong with it, or with a field that the
 * answers have made visible; another one; or, undefined, there is no further step, so that all may be submitted.
 */
export function followStep(posted: PostedStep): NextStep | undefined {
  const { fields, review, answers, goal, step, shown } = posted;
  const visible = visibleIds(fields, answers);
  if (goal.kind === 'forward') {
    const here = fields.filter(({ id, page }) => page === step && visible.has(id));
    const seen = new Set(here.flatMap(({ id }) => (shown.has(id) ? [id] : [])));
    const violations = posted.violations.filter(({ path }) => seen.has(fieldIdOf(path)));
    if (violations.length > 0) return { step, violations };
    const revealed = here.find(({ id }) => !shown.has(id));
    if (revealed !== undefined) return { step, violations, revealed: revealed.id };
  }
  const next = stepAfter(goal, step, stepsOf(fields, visible, review));
  return next === undefined ? undefined : { step: next, violations: [] };
}

/** Whether all is asked at once, so that there is nothing to check before it is submitted. */
export function isOneStep(fields: readonly Field[], review: boolean): boolean {
  return !review && fields.every(({ page, visibleWhen }) => page === 1 && visibleWhen === undefined);
}

/** The ids of the fields whose conditions the answers meet. Answers to invisible fields do not count. */
export function visibleIds(fields: readonly Field[], answers: Answers): Set<string> {
  const counted: Record<string, unknown> = {};
  const visible = new Set<string>();
  for (const { id, visibleWhen } of fields) {
    if (visibleWhen !== undefined && !evaluate(visibleWhen, counted)) continue;
    visible.add(id);
    if (Object.hasOwn(answers, id)) counted[id] = answers[id];
  }
  return visible;
}

/**
 * The pages with visible fields, in order; page 1 if no field is visible. With `review` the step that shows all
 * answers comes last.
 */
export function stepsOf(fields: readonly Field[], visible: ReadonlySet<string>, review = false): number[] {
  const pages = new Set(fields.filter(({ id }) => visible.has(id)).map(({ page }) => page));
  const steps = pages.size === 0 ? [1] : [...pages].sort((left, right) => left - right);
  return review ? [...steps, REVIEW_STEP] : steps;
}

/** The step that shows all answers: behind every page that a field can have. */
export const REVIEW_STEP = MAX_PAGES + 1;

/**
 * The page on which a person goes on: the first one that lacks a required answer, but not past the
 * one behind the last answer.
 */
export function resumeStep(fields: readonly Field[], answers: Answers, review = false): number {
  const { steps, last, lacking } = progressOf(fields, answers, review);
  const behind = steps.find((page) => page > last) ?? last;
  return steps.findLast((page) => page <= Math.min(lacking, behind)) ?? steps[0] ?? 1;
}

/**
 * Where a page begins. With answers kept, the address may name a step, but none behind one that
 * lacks a required answer.
 */
export function stepFor(
  fields: readonly Field[],
  answers: Answers,
  resumes: boolean,
  asked: unknown,
  review = false,
): number {
  const { steps, lacking } = progressOf(fields, answers, review);
  if (!resumes) return steps[0] ?? 1;
  const step = Number(asked);
  return steps.includes(step) && step <= lacking ? step : resumeStep(fields, answers, review);
}

/** The steps, the last one with an answer (0: none), and the first one that lacks a required one. */
function progressOf(fields: readonly Field[], answers: Answers, review: boolean) {
  const visible = visibleIds(fields, answers);
  const shown = fields.filter(({ id }) => visible.has(id));
  const isAnswered = ({ id }: Field) => Object.hasOwn(answers, id) && !isEmpty(answers[id]);
  const missing = shown.filter((field) => field.required && !isAnswered(field));
  return {
    steps: stepsOf(fields, visible, review),
    last: Math.max(0, ...shown.filter(isAnswered).map(({ page }) => page)),
    lacking: Math.min(...missing.map(({ page }) => page)),
  };
}

/** Where a post leads; undefined: there is no further step, so that the answers are whole. */
export function stepAfter(goal: Goal, step: number, steps: readonly number[]): number | undefined {
  switch (goal.kind) {
    case 'back':
      return steps.findLast((page) => page < step) ?? steps[0];
    case 'page':
      return steps.findLast((page) => page <= goal.page) ?? steps[0];
    case 'forward':
      return steps.find((page) => page > step);
    default:
      return goal satisfies never;
  }
}

/** Answers by field id, as JSON. */
type Answers = Readonly<Record<string, unknown>>;

/** Where a post leads: to the next step, a step back, or to a certain page. */
export type Goal = { kind: 'forward' | 'back' } | { kind: 'page'; page: number };

type PostedStep = {
  /** The fields that a person may see, in order. */
  fields: readonly Field[];
  /** Whether the last step shows all answers. */
  review: boolean;
  /** The answers that fit, those of other steps too. */
  answers: Answers;
  /** What is wrong with what was posted, and what is missing, on all steps. */
  violations: readonly Violation[];
  goal: Goal;
  step: number;
  /** The ids of the fields that the person saw. */
  shown: ReadonlySet<string>;
};

type NextStep = { step: number; violations: readonly Violation[]; revealed?: string };
