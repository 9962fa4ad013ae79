import { describe, expect, it } from 'vitest';
import { nearestName } from '../../../src/domain/text/nearest-name.ts';

describe('nearestName', () => {
  const known = [
    'id',
    'type',
    'label',
    'required',
    'maxLength',
    'minLength',
    'placeholder',
    'options',
    'from',
  ];

  it.each([
    ['lable', 'label'],
    ['lbel', 'label'],
    ['labels', 'label'],
    ['lagel', 'label'],
    ['requierd', 'required'],
    ['max_length', 'maxLength'],
    ['MinLength', 'minLength'],
    ['placholdr', 'placeholder'],
    ['form', 'from'],
    ['option', 'options'],
  ])('takes %s for %s', (name, expected) => {
    expect(nearestName(name, known)).toBe(expected);
  });

  it.each(['colour', 'tpey_', 'ix', 'x', '', '_', 'labbbel', 'unrequired', 'constructor', '__proto__'])(
    'takes %j for nothing',
    (name) => {
      expect(nearestName(name, known)).toBeUndefined();
    },
  );

  it('prefers the nearest, and among equals the first', () => {
    expect(nearestName('cost', ['host', 'cots', 'most'])).toBe('host');
    expect(nearestName('co_st', ['host', 'coST'])).toBe('coST');
    expect(nearestName('cost', [])).toBeUndefined();
  });

  it('answers at once for a name of the size of a request', () => {
    const long = 'a'.repeat(1_000_000);

    expect(nearestName(long, known)).toBeUndefined();
  });
});
