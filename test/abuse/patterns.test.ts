import { beforeAll, describe, expect, it } from 'vitest';
import { engines } from '../support/database.ts';
import { type AttackedService, HEALTH_MS, harmDone, MEMORY_MIB, sharedService } from './attacked-service.ts';

/** Its states are as many as the subsets of 200 positions. */
const pattern = '(?:[ab]*a[ab]{200}|.*b[ab]{200})c';

/** Those of one service come one after the other, those of the other engine beside them. */
const one = { concurrent: false };

describe.concurrent.each(engines)('expensive patterns on %s', (engine) => {
  let service: AttackedService;
  beforeAll(async () => {
    service = await sharedService(engine);
  });

  it('keep nobody waiting for forms that strangers made', one, async () => {
    const forms = await Promise.all([1, 2].map(() => givenForm(service, costlyFields)));
    const answers = answersOf(costlyFields);

    const submit = (client: number) =>
      post(service, `/api/forms/${forms[client % forms.length]}/submissions`, { answers });
    const { attack, others, harm } = await attackBy(service, 8, submit);

    // Checked and refused; too many of one address.
    expect(attack.filter((status) => ![422, 429].includes(status))).toEqual([]);
    expect(attack).toContain(422);
    expect(new Set(others)).toEqual(new Set([201]));
    expect(harm.slowestHealthMs).toBeLessThan(HEALTH_MS);
    expect(harm.addedMib).toBeLessThan(MEMORY_MIB);
  });

  it('keep nobody waiting for forms that were made with a key', one, async () => {
    const form = await givenForm(service, costlyFields, service.key);
    const answers = answersOf(costlyFields);

    const submit = () => post(service, `/v1/forms/${form}/submissions`, { answers }, service.key);
    const { attack, others, harm } = await attackBy(service, 10, submit);

    expect(attack.filter((status) => status !== 422)).toEqual([]);
    expect(new Set(others)).toEqual(new Set([201]));
    expect(harm.slowestHealthMs).toBeLessThan(HEALTH_MS);
    expect(harm.addedMib).toBeLessThan(MEMORY_MIB);
  });

  it('keep nobody waiting while they are refused', one, async () => {
    const hostile = [`(?:${'a'.repeat(240)}){1000}`, '\\pL{1000}'.repeat(27), `(?i)[${'Ā-ﻼ'.repeat(80)}]`];
    const fields = Array.from({ length: 40 }, (_, index) => ({
      id: `f${index}`,
      type: 'text',
      pattern: `${hostile[index % hostile.length]}${index}`,
    }));

    const create = () => post(service, '/api/forms/create', definitionOf(fields));
    const { attack, others, harm } = await attackBy(service, 4, create);

    expect(new Set([...attack, 429])).toEqual(new Set([422, 429]));
    expect(new Set(others)).toEqual(new Set([201]));
    expect(harm.slowestHealthMs).toBeLessThan(HEALTH_MS);
  });
});

/** What so many clients, and others beside them, are answered, each call after the last one, and what harm it does. */
async function attackBy(
  service: AttackedService,
  clients: number,
  call: (client: number) => Promise<Response>,
) {
  const form = await givenForm(service, [{ id: 'f0', type: 'text', pattern: '[a-z]+@[a-z]+' }], service.key);
  const submit = () => post(service, `/api/forms/${form}/submissions`, { answers: { f0: 'ada@example' } });
  // Warm code, as after some hours of attacks.
  const attack = [(await call(0)).status, (await call(1)).status, (await call(0)).status];
  const others = [(await submit()).status];
  const harm = await harmDone(service, async () => {
    const end = performance.now() + ATTACK_MS;
    const attackers = Array.from({ length: clients }, async (_, client) => {
      while (performance.now() < end) attack.push((await call(client)).status);
    });
    while (performance.now() < end && others.length < 50) others.push((await submit()).status);
    await Promise.all(attackers);
  });
  return { attack, others, harm };
}

/** As costly as a definition may be: 5 × 418 instructions × (430 + 40) characters are 0.98 million steps. */
const costlyFields = Array.from({ length: 5 }, (_, index) => ({
  id: `f${index}`,
  type: 'text',
  pattern,
  maxLength: 430,
}));

/** Texts at random, so that no state comes twice. */
function answersOf(fields: typeof costlyFields): Record<string, string> {
  let state = 1;
  const letter = () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return (state & 0x10000) === 0 ? 'b' : 'a';
  };
  return Object.fromEntries(
    fields.map(({ id, maxLength }) => [id, Array.from({ length: maxLength }, letter).join('')]),
  );
}

async function givenForm(service: AttackedService, fields: object[], key?: string): Promise<string> {
  const created = await post(service, '/api/forms/create', definitionOf(fields), key);
  const { form } = (await created.json()) as { form: { id: string; activate_url: string } };
  await post(service, form.activate_url, { email: 'owner@example.com' });
  return form.id;
}

function definitionOf(fields: object[]): object {
  return { name: 'Attack', slug: 'attack', fields, delivery: { type: 'email' } };
}

function post({ url }: AttackedService, path: string, body: object, key?: string): Promise<Response> {
  const headers = {
    'content-type': 'application/json',
    ...(key !== undefined && { authorization: `Bearer ${key}` }),
  };
  return fetch(new URL(path, url), { method: 'POST', headers, body: JSON.stringify(body) });
}

const ATTACK_MS = 1_000;
