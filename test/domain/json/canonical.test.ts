import { describe, expect, it } from 'vitest';
import { canonicalJson, fingerprint } from '../../../src/domain/json/json-text.ts';
import { givenDefinition } from '../given.ts';

describe('canonicalJson', () => {
  it('is the same for equal values, whatever the order of keys', () => {
    expect(canonicalJson({ b: [1e21, -0, 0.1], a: { é: 'ü', Z: null } })).toBe(
      '{"a":{"Z":null,"é":"ü"},"b":[1e+21,0,0.1]}',
    );
  });

  it('refuses what JSON can’t say', () => {
    for (const value of [undefined, Number.NaN, '\ud800', { a: Number.POSITIVE_INFINITY }]) {
      expect(() => canonicalJson(value)).toThrow();
    }
  });
});

describe('a fingerprint of a definition', () => {
  it('is a SHA-256 that tells definitions apart by what they say', () => {
    const said = givenDefinition({ settings: { allowPartial: false } });
    const unsaid = givenDefinition();
    const other = givenDefinition({ name: 'Other' });

    expect(fingerprint(unsaid)).toMatch(/^[0-9a-f]{64}$/);
    expect(fingerprint(said)).toBe(fingerprint(unsaid));
    expect(fingerprint(other)).not.toBe(fingerprint(unsaid));
  });
});

describe('fingerprint', () => {
  it('knows a repeated request', () => {
    expect(fingerprint({ source: 'api', answers: { a: 1, b: 2 } })).toBe(
      fingerprint({ answers: { b: 2, a: 1 }, source: 'api' }),
    );
    expect(fingerprint({ answers: { a: '1' } })).not.toBe(fingerprint({ answers: { a: 1 } }));
  });
});
