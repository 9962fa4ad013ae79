import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isMatrixFull } from '../support/covering.ts';
import { engines, oneEngine, shareOf } from '../support/database.ts';
import {
  everybody,
  keysWithOneScope,
  keysWithSomeScopes,
  keysWithTwoScopes,
  otherActors,
} from '../support/rights/actors.ts';
import { methods, usedBy, walk } from '../support/rights/walk.ts';
import { startServices, type TestServices } from '../support/services.ts';

const keysWithMore = isMatrixFull ? keysWithTwoScopes : keysWithSomeScopes;
const actors = [...otherActors, ...keysWithOneScope, ...keysWithMore];

it('is tried with each two scopes together, beside none that gives another right', () => {
  const untried = keysWithTwoScopes.filter(
    ({ scopes = [], holds }) =>
      !keysWithMore.some(
        (key) =>
          scopes.every((scope) => key.scopes?.includes(scope)) &&
          key.holds.every((right) => holds.includes(right)),
      ),
  );

  expect(untried.map(({ name }) => name)).toEqual([]);
});

describe.each(engines)('no call gives more than its caller holds, on %s', (engine) => {
  let services: TestServices;
  beforeAll(async () => {
    services = await startServices(engine);
  });
  afterAll(() => services[Symbol.asyncDispose]());

  it.each(shareOf(actors, engine))('to $name', async (actor) => {
    expect(await walk(services, actor, { depth: 1 })).toEqual([]);
  });
});

describe.each(oneEngine('pglite'))('every call that answers everybody, on %s,', (engine) => {
  it('shows and deletes answers where the table says so', async () => {
    await using services = await startServices(engine);
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
