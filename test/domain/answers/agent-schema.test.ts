import { expect, it } from 'vitest';
import { conditionInWords } from '../../../src/domain/answers/agent-schema.ts';
import type { Condition } from '../../../src/domain/conditions/condition.ts';

const isPro: Condition = { field: 'plan', op: 'eq', value: 'pro' };
const isMany: Condition = { field: 'seats', op: 'gte', value: 5 };

it.each<[Condition, string]>([
  [isPro, 'plan is "pro"'],
  [{ field: 'plan', op: 'nin', value: ['a', null] }, 'plan is none of "a", null'],
  [{ field: 'plan', op: 'empty' }, 'plan has no answer'],
  [{ all: [isPro, isMany] }, 'plan is "pro" and seats is at least 5'],
  [
    { any: [isPro, { all: [isMany, { not: isPro }] }] },
    'plan is "pro" or (seats is at least 5 and not (plan is "pro"))',
  ],
  [{ any: [{ all: [isPro] }] }, 'plan is "pro"'],
])('says %j in words', (condition, words) => {
  expect(conditionInWords(condition)).toBe(words);
});
