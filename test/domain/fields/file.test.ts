import { describe, expect, it } from 'vitest';
import { acceptsFile } from '../../../src/domain/fields/file.ts';

describe('acceptsFile', () => {
  it.each<[string[] | undefined, string, string, boolean]>([
    [undefined, 'application/octet-stream', 'a', true],
    [['image/*'], 'image/png', 'a.png', true],
    [['image/*'], 'text/plain', 'a.png', false],
    [['.PDF'], 'text/plain', 'a.pdf', true],
    [['application/pdf'], 'application/pdf', 'a', true],
    [['application/pdf', '.txt'], 'image/png', 'a.png', false],
  ])('with %j, a %s named %s: %s', (accept, type, name, expected) => {
    expect(acceptsFile(accept, type, name)).toBe(expected);
  });
});
