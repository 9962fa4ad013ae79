/**
 * Losses that are known and not mended yet, each with a seed that finds it. A run fails if it finds another one, and if
 * the seed of one of these no longer finds it. None is known today.
 */
export const expectedFindings: readonly Expected[] = [];

export type Expected = {
  rule: string;
  reason: string;
  seed: number;
};
