import { describe, expect, it } from 'vitest';
import { resumeStep, stepAfter, stepFor, stepsOf, visibleIds } from '../../../src/domain/answers/steps.ts';
import type { Field } from '../../../src/domain/definition/definition.ts';

const fields = [
  field('name', { required: true }),
  field('guests', { type: 'number' }),
  field('diet', { page: 2, visibleWhen: { field: 'guests', op: 'gt', value: 0 } }),
  field('allergy', { page: 2, visibleWhen: { field: 'diet', op: 'notEmpty' } }),
  field('consent', { page: 4, type: 'checkbox', required: true }),
];

describe('the steps of a form', () => {
  it('are the pages that have something to ask', () => {
    expect(stepsOf(fields, visibleIds(fields, {}))).toEqual([1, 4]);
    expect(stepsOf(fields, visibleIds(fields, { guests: 2 }))).toEqual([1, 2, 4]);
    expect(stepsOf(fields, new Set())).toEqual([1]);
  });

  it('leave answers out of account that are no longer asked for', () => {
    expect(visibleIds(fields, { guests: 0, diet: 'vegan' })).toEqual(new Set(['name', 'guests', 'consent']));
  });

  it('lead forward, back, and to where one was before', () => {
    expect(stepAfter({ kind: 'forward' }, 1, [1, 2, 4])).toBe(2);
    expect(stepAfter({ kind: 'forward' }, 4, [1, 2, 4])).toBeUndefined();
    expect(stepAfter({ kind: 'back' }, 4, [1, 4])).toBe(1);
    expect(stepAfter({ kind: 'back' }, 1, [1, 4])).toBe(1);
    expect(stepAfter({ kind: 'page', page: 2 }, 4, [1, 4])).toBe(1);
    expect(stepAfter({ kind: 'page', page: 999 }, 1, [1, 2, 4])).toBe(4);
  });

  it.each([
    [{}, 1],
    [{ guests: 2 }, 1],
    [{ name: 'Ada' }, 4],
    [{ name: 'Ada', guests: 2 }, 2],
    [{ name: 'Ada', guests: 2, diet: 'vegan' }, 4],
    [{ name: 'Ada', guests: 2, consent: true }, 4],
  ])('go on, with %j answered, on page %i', (answers, page) => {
    expect(resumeStep(fields, answers)).toBe(page);
  });

  it('begin where the address says, if nothing required is missing before', () => {
    const optional = [field('a', {}), field('b', { page: 2, required: true }), field('c', { page: 3 })];

    expect(stepFor(optional, {}, true, '2')).toBe(2);
    expect(stepFor(optional, {}, true, '3')).toBe(1);
    expect(stepFor(optional, { b: 'x' }, true, '3')).toBe(3);
    expect(stepFor(optional, { b: 'x' }, false, '3')).toBe(1);
  });
});

function field(id: string, attributes: Partial<Field>): Field {
  return {
    id,
    type: 'text',
    label: id,
    required: false,
    hidden: false,
    answeredBy: 'anyone',
    page: 1,
    ...attributes,
  };
}
