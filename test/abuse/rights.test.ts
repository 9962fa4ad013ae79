import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type Actor,
  keysWithAllButOne,
  keysWithOneScope,
  keysWithTwoScopes,
  otherActors,
} from '../support/rights/actors.ts';
import { walk } from '../support/rights/walk.ts';
import { startServices, type TestServices } from '../support/services.ts';

describe('rights over answers', () => {
  let services: TestServices;
  beforeAll(async () => {
    services = await startServices('postgres');
  });
  afterAll(() => services[Symbol.asyncDispose]());

  it.each([
    ['one scope', keysWithOneScope.filter(({ scopes }) => !scopes?.includes('*'))],
    ['two scopes', keysWithTwoScopes],
  ])(
    'do not grow by three calls with keys of %s',
    async (_, actors) => {
      expect(await waysOf(actors, 3)).toEqual([]);
    },
    1_800_000,
  );

  it('do not grow by three calls of owners, recipients, and those who were', async () => {
    expect(await waysOf(otherActors, 3)).toEqual([]);
  }, 300_000);

  it('do not grow by a call with keys of all scopes but one', async () => {
    expect(await waysOf(keysWithAllButOne, 1)).toEqual([]);
  }, 300_000);

  /** Walks for two at a time: one waits for the database while the other does not. */
  async function waysOf(actors: Actor[], depth: number): Promise<string[]> {
    const found: string[] = [];
    const left = [...actors];
    const walkOn = async () => {
      for (let actor = left.shift(); actor !== undefined; actor = left.shift())
        found.push(...(await walk(services, actor, { depth })));
    };
    await Promise.all([walkOn(), walkOn()]);
    return found;
  }
});
