import { describe, expect, it } from 'vitest';
import { compileForm } from '../../../src/domain/answers/answers.ts';
import { changeKinds } from '../../../src/domain/contracts/change-kinds.ts';
import { changesBetween, refusedBy } from '../../../src/domain/contracts/changes.ts';
import { isObject } from '../../../src/domain/json/json.ts';
import { givenDefinition } from '../given.ts';
import { type Case, corpus, pool } from './corpus.ts';

describe('changes between two versions of a form', () => {
  it.each(corpus)('$name', ({ former, next, kinds }) => {
    const changes = changesBetween(givenDefinition(former), givenDefinition(next));

    expect(changes.map(({ kind }) => kind)).toEqual(kinds);
  });

  it('are of every kind in the corpus', () => {
    expect(corpus.length).toBeGreaterThanOrEqual(60);
    expect(new Set(corpus.flatMap(({ kinds }) => kinds))).toEqual(new Set(Object.keys(changeKinds)));
  });

  it.each(corpus)('keep what was valid exactly if they say so: $name', (one) => {
    const former = givenDefinition(one.former);
    const changes = changesBetween(former, givenDefinition(one.next));

    const refused = answersTo(one.former).filter(({ given }) => !isValid(one.next, given));

    const isBackward = changes.every(({ backward }) => backward);
    expect(
      isBackward === (refused.length === 0) || one.explained !== undefined,
      JSON.stringify(refused[0]),
    ).toBe(true);
    // What is explained is on the safe side.
    if (one.explained !== undefined) expect(isBackward).toBe(false);
  });

  it.each(corpus)('leave readers what they had if they say so: $name', (one) => {
    const former = givenDefinition(one.former);
    const changes = changesBetween(former, givenDefinition(one.next));

    const always = former.fields
      .map(({ id }) => id)
      .filter((id) => answersTo(one.former).every(({ stored }) => id in stored));
    const missing = answersTo(one.next).filter(({ stored }) => always.some((id) => !(id in stored)));

    const isForward = changes.every(({ forward }) => forward);
    const isRetyped = changes.some(({ kind }) => kind === 'field_retyped');
    expect(isForward).toBe(missing.length === 0 && !isRetyped);
  });

  it('are refused by the compatibility that the former version promises', () => {
    const refusedIn = (compatibility: 'none' | 'backward' | 'forward' | 'full', next: object[]) => {
      const former = givenDefinition({
        fields: [{ id: 'f', type: 'text', required: true }],
        settings: { compatibility },
      });
      const changes = changesBetween(former, givenDefinition({ fields: next, settings: { compatibility } }));
      return refusedBy(former.settings, changes).map(({ path, kind }) => `${path} ${kind}`);
    };
    const optional = [{ id: 'f', type: 'text' }];
    const shorter = [{ id: 'f', type: 'text', required: true, maxLength: 5 }];

    expect(refusedIn('none', shorter)).toEqual([]);
    expect(refusedIn('backward', shorter)).toEqual(['fields.f limits_narrowed']);
    expect(refusedIn('backward', optional)).toEqual([]);
    expect(refusedIn('forward', shorter)).toEqual([]);
    expect(refusedIn('forward', optional)).toEqual(['fields.f made_optional']);
    expect(refusedIn('full', shorter)).toEqual(['fields.f limits_narrowed']);
    expect(refusedIn('full', optional)).toEqual(['fields.f made_optional']);
  });
});

/** The pool's answers that a form takes, to `f` and to nothing, with the condition met and not, and what it stores of them. */
function answersTo(parts: Case['former']) {
  const form = compileForm(givenDefinition(parts));
  const asked = new Set(form.definition.fields.map(({ id }) => id));
  const all = [{}, ...pool.map((value) => ({ f: value }))].flatMap((answers) => [
    answers,
    ...(asked.has('other') ? [{ ...answers, other: 'yes' }] : []),
  ]);
  return all.flatMap((given) => {
    const checked = form.checkAnswers(given);
    return checked.ok && isObject(checked.answers) ? [{ given, stored: checked.answers }] : [];
  });
}

function isValid(parts: Case['next'], answers: Record<string, unknown>): boolean {
  return compileForm(givenDefinition(parts)).checkAnswers(answers).ok;
}
