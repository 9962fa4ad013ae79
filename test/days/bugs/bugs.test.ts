import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { rules } from '../ledger/index.ts';
import { bugs } from './bugs.ts';

describe('the planted bugs', () => {
  it.each(bugs.flatMap(({ name, edits }) => edits.map((edit) => [name, edit] as const)))(
    'fit the source: %s',
    (_, { file, find }) => {
      const source = readFileSync(join(import.meta.dirname, '../../..', file), 'utf8');

      expect(source.split(find)).toHaveLength(2);
    },
  );

  it('are at least ten, each found by rules that there are', () => {
    const known = new Set(rules.map(({ name }) => name));

    expect(bugs.length).toBeGreaterThanOrEqual(10);
    expect(bugs.flatMap((bug) => bug.rules).filter((rule) => !known.has(rule))).toEqual([]);
  });
});
