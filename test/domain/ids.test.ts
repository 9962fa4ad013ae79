import { describe, expect, it } from 'vitest';
import { demoFormId, instantOfId, isId, newId, newSessionId, smallestIdAt } from '../../src/domain/ids.ts';

const now = Date.parse('2026-11-21T10:00:00.000Z');

describe('newId', () => {
  it('sorts by the instant it was made at', () => {
    const ids = [0, 1, 1000, 86_400_000, 10 ** 12].map((later) => newId('sub', now + later));

    expect([...ids].sort()).toEqual(ids);
  });

  it('is never the same twice', () => {
    const ids = new Set(Array.from({ length: 10_000 }, () => newId('evt', now)));

    expect(ids.size).toBe(10_000);
  });
});

describe('smallestIdAt', () => {
  it('is above every id made before, and not above any made at the instant or later', () => {
    const bound = smallestIdAt('sub', now);

    expect(isId('sub', bound)).toBe(true);
    for (let n = 0; n < 100; n++) {
      expect(newId('sub', now - 1) < bound).toBe(true);
      expect(newId('sub', now) >= bound).toBe(true);
    }
  });

  it.each([-1, Number.MIN_SAFE_INTEGER, 8.64e15, Number.POSITIVE_INFINITY])(
    'is an id even at %d',
    (instant) => {
      expect(isId('sub', smallestIdAt('sub', instant))).toBe(true);
    },
  );
});

describe('instantOf', () => {
  it('is when the id was made', () => {
    expect(instantOfId(newId('dlv', now))).toBe(now);
    expect(instantOfId(smallestIdAt('dlv', 2 ** 48 - 1))).toBe(2 ** 48 - 1);
  });
});

describe('newSessionId', () => {
  it('carries 160 random bits and no time', () => {
    const ids = Array.from({ length: 1000 }, newSessionId);

    expect(ids.every((id) => isId('sess', id))).toBe(true);
    expect(new Set(ids.map((id) => id.slice(0, 12))).size).toBeGreaterThan(990);
  });
});

describe('isId', () => {
  it.each([
    '',
    'sub_',
    'sub',
    newId('evt', now),
    `${newId('sub', now)}0`,
    `${newId('sub', now)}\n`,
    newId('sub', now).toUpperCase(),
    'sub_8zzzzzzzzzzzzzzzzzzzzzzzzz',
    "sub_0'; drop table x; --aaa",
  ])('refuses %j as the id of a submission', (text) => {
    expect(isId('sub', text)).toBe(false);
  });

  it('knows the form of the demo', () => {
    expect(isId('form', demoFormId)).toBe(true);
    expect(isId('sub', demoFormId)).toBe(false);
  });
});
