import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { engines } from '../support/database.ts';
import { everybody, keysWithOneScope, keysWithTwoScopes, otherActors } from '../support/rights/actors.ts';
import { methods, usedBy, walk } from '../support/rights/walk.ts';
import { startServices, type TestServices } from '../support/services.ts';

describe.each(engines)('no call gives more than its caller holds, on %s', (engine) => {
  let services: TestServices;
  beforeAll(async () => {
    services = await startServices(engine);
  });
  afterAll(() => services[Symbol.asyncDispose]());

  // A second scope is no matter of the database: these are tried on one.
  const pairs = engine === 'postgres' ? keysWithTwoScopes : [];

  it.each([...otherActors, ...keysWithOneScope, ...pairs])('to $name', async (actor) => {
    expect(await walk(services, actor, { depth: 1 })).toEqual([]);
  });

  it('and shows and deletes answers where the table says so', async () => {
    const used = new Map(methods.map((method) => [method, new Set<string>()]));
    const onUse = (method: Method, rights: string[]) => {
      for (const right of rights) used.get(method)?.add(right === 'file' ? 'reading' : right);
    };

    await walk(services, everybody, { depth: 1, onUse });

    expect([...used].map(([method, rights]) => [nameOf(method), ...[...rights].sort()])).toEqual(
      methods.map((method) => [nameOf(method), ...(notSeen.has(nameOf(method)) ? [] : usedBy(method))]),
    );
  });
});

/** The one deletes forms that are archived, the other shows how often something was answered. */
const notSeen = new Set(['FormsService.deleteForm', 'OwnersService.getOwnedFormStatistics']);

function nameOf({ parent, localName }: Method): string {
  return `${parent.name}.${localName}`;
}

type Method = (typeof methods)[number];
