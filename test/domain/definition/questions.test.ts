import { describe, expect, it } from 'vitest';
import { checkQuestions, withFieldIds } from '../../../src/domain/definition/questions.ts';

describe('questions', () => {
  it('get ids of their labels only if a form can have as many', () => {
    const labelled = (count: number) => Array.from({ length: count }, () => ({ label: 'Why?' }));
    const [most, more] = [labelled(100), labelled(101)];

    expect(withFieldIds(most)).toContainEqual({ id: 'why_100', type: 'text', label: 'Why?' });
    expect(withFieldIds(more)).toBe(more);
  });

  it('are refused for their number alone if they are more than a form can have', () => {
    const fields = Array.from({ length: 16_000 }, () => ({ label: 'a' }));
    const checked = checkQuestions({ fields }, { allowPrivateUrls: false });

    expect(checked.ok ? [] : checked.violations.map(({ path, code }) => `${path} ${code}`)).toEqual([
      'fields too_big',
      'fields too_big',
    ]);
  });
});
