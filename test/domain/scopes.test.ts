import { describe, expect, it } from 'vitest';
import { holds, isScope, scopes, withinScopes } from '../../src/domain/scopes.ts';

describe('scopes', () => {
  it('allow what they name, and "*" all', () => {
    expect(holds(['submissions:read'], 'submissions:read')).toBe(true);
    expect(holds(['submissions:read'], 'submissions:delete')).toBe(false);
    expect(holds(['forms:write'], 'forms:read')).toBe(false);
    expect(holds([], 'forms:read')).toBe(false);
    expect(scopes.every((scope) => holds(['*'], scope))).toBe(true);
  });

  it('let a key give no more than it has', () => {
    expect(withinScopes(['forms:read'], ['forms:read', 'keys:write'])).toBe(true);
    expect(withinScopes(['forms:read', 'forms:write'], ['forms:read', 'keys:write'])).toBe(false);
    expect(
      withinScopes(
        ['*'],
        scopes.filter((scope) => scope !== '*'),
      ),
    ).toBe(false);
    expect(withinScopes(['*', 'forms:read'], ['*'])).toBe(true);
  });

  it('are known by their whole name', () => {
    expect(isScope('forms:read')).toBe(true);
    expect(['forms', 'forms:*', '', 'toString', 'FORMS:READ'].some(isScope)).toBe(false);
  });
});
