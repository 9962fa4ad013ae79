import { expect, it } from 'vitest';
import { createFairQueue } from '../../../src/services/patterns/fair-queue.ts';

it('lets projects take turns, and the forms of a project', () => {
  const queue = createFairQueue<string>();
  const pushed = ['a1 x', 'a1 x', 'a1 x', 'a1 y', 'b1 x', 'b1 x', 'c1 x'].map((owner, index) => {
    const [project = '', form = ''] = owner.split(' ');
    return queue.push({ project, form }, `${project[0]}${form}${index}`);
  });

  const order = Array.from({ length: queue.size() }, () => queue.shift());

  expect(pushed).not.toContain(false);
  expect(order).toEqual(['ax0', 'bx4', 'cx6', 'ay3', 'bx5', 'ax1', 'ax2']);
  expect(queue.shift()).toBeUndefined();
});

it('refuses a form, and a project, that has too much waiting, and no other', () => {
  const queue = createFairQueue<number>();
  const push = (project: string, form: string) => queue.push({ project, form }, 0);

  const ofOneForm = Array.from({ length: 5 }, () => push('a', 'x'));
  const ofOneProject = Array.from({ length: 33 }, (_, form) => push('b', `${form}`));

  expect(ofOneForm).toEqual([true, true, true, true, false]);
  expect(ofOneProject.indexOf(false)).toBe(32);
  expect([push('a', 'y'), push('c', 'x')]).toEqual([true, true]);
  expect(queue.size()).toBe(4 + 32 + 2);
});
