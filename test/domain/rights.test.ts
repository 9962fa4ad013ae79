import type { DescMessage, DescMethod } from '@bufbuild/protobuf';
import { MethodOptions_IdempotencyLevel as IdempotencyLevel } from '@bufbuild/protobuf/wkt';
import { describe, expect, it } from 'vitest';
import { policies } from '../../src/domain/methods.ts';
import { rightsGiven, rightsUsed } from '../support/rights/rights.ts';

const methods = [...policies.keys()];

describe('the table of rights', () => {
  it('says of each RPC which right over answers it uses', () => {
    const named = Object.entries(rightsUsed).flatMap(([service, table]) =>
      namesIn(table).map((name) => `${service}.${name}`),
    );

    expect([...new Set(named)].sort()).toEqual(methods.map(nameOf).sort());
  });

  it('says of each field of a request that is no read which right it gives', () => {
    const messages = methods
      .filter(({ idempotency }) => idempotency !== IdempotencyLevel.NO_SIDE_EFFECTS)
      .reduce((found, { input }) => collectMessages(input, found), new Map<string, string[]>());
    const given = Object.entries(rightsGiven).map(([name, table]): [string, string[]] => [
      name,
      namesIn(table).sort(),
    ]);

    expect(Object.fromEntries(given)).toEqual(Object.fromEntries(messages));
  });
});

function nameOf({ parent, localName }: DescMethod): string {
  return `${parent.name}.${localName}`;
}

function namesIn(table: Readonly<Record<string, string>>): string[] {
  return Object.values(table).flatMap((names) => names.split(/\s+/));
}

/** Adds the names of a message's fields by its name, and those of the messages of the contract that it holds. */
function collectMessages(message: DescMessage, found: Map<string, string[]>): Map<string, string[]> {
  if (!message.typeName.startsWith('headlessforms.') || found.has(message.name)) return found;
  const leaves = message.fields.filter((field) => !isOfContract(field.message));
  found.set(message.name, leaves.map(({ localName }) => localName).sort());
  for (const { message: held } of message.fields) if (held !== undefined) collectMessages(held, found);
  return found;
}

function isOfContract(message: DescMessage | undefined): boolean {
  return message?.typeName.startsWith('headlessforms.') === true;
}
