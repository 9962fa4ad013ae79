import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { engines } from '../support/database.ts';
import { contactForm } from '../support/server.ts';
import {
  type AttackedService,
  givenForm,
  HEALTH_MS,
  harmDone,
  MEMORY_MIB,
  startAttackedService,
} from './attacked-service.ts';

const MIB = 1024 * 1024;
const file = Buffer.alloc(2 * MIB, 'x');
const answers = { email: 'ada@example.com', message: 'x'.repeat(60_000) };
const definition = {
  ...contactForm,
  fields: contactForm.fields.map((field) => ({ ...field, ...lengthOf(field) })),
};

/** As little as the attack needs to show the bounds within seconds. */
const env = { KEYLESS_MIB_PER_HOUR: '12', KEYLESS_MIB_PER_PROJECT: '30', TRUST_PROXY: '1' };

describe.concurrent.each(engines)('what strangers store on %s', (engine) => {
  it('ends with the budget of their address, and with that of the project', { timeout: 90_000 }, async () => {
    await using service = await startAttackedService(engine, env);
    const forms = await Promise.all(
      [1, 2, 3].map(() => givenForm(service, { fields: [{ id: 'cv', type: 'file' }] })),
    );
    const taken = { files: 0, answers: 0, late: 0 };

    const harm = await harmDone(service, async () => {
      taken.files = await countTaken(24, (turn) => upload(service, forms[turn % 3] ?? '', '192.0.2.1'));
      const keyless = await Promise.all([1, 2, 3, 4, 5].map(() => givenKeylessForm(service, '192.0.2.2')));
      const submit = (turn: number) =>
        post(service, `/api/forms/${keyless[turn % 5]}/submissions`, { answers }, '192.0.2.2');
      taken.answers = await countTaken(150, submit);
      taken.late = await countTaken(10, (turn) => upload(service, forms[turn % 3] ?? '', '192.0.2.3'));
    });
    const owners = await fetch(`${service.url}/v1/forms/${service.formId}/submissions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${service.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ answers: { email: 'ada@example.com' } }),
    });

    // Six files of 2 MiB are the hour's 12 MiB; answers count twice, since the event has them, too.
    expect(taken.files).toBeGreaterThanOrEqual(1);
    expect(taken.files).toBeLessThanOrEqual(6);
    expect(taken.answers).toBeGreaterThan(50);
    expect((taken.answers * answers.message.length * 2) / MIB).toBeLessThanOrEqual(12);
    // What is left of the project's 30 MiB.
    expect(taken.late).toBeLessThanOrEqual(6);
    expect(owners.status).toBe(201);
    expect(sizeOf(join(service.dataDir, 'uploads'))).toBeLessThanOrEqual(24 * MIB);
    expect(harm.slowestHealthMs).toBeLessThanOrEqual(HEALTH_MS);
    expect(harm.addedMib).toBeLessThanOrEqual(MEMORY_MIB);
  });
});

/** Makes calls, eight at a time, and counts those that were answered 201; all others are to be 429. */
async function countTaken(calls: number, call: (turn: number) => Promise<Response>): Promise<number> {
  let turn = 0;
  let count = 0;
  const others = new Set<number>();
  const caller = async () => {
    while (turn < calls) {
      const response = await call(turn++);
      await response.arrayBuffer();
      if (response.status === 201) count += 1;
      else others.add(response.status);
    }
  };
  await Promise.all(Array.from({ length: 8 }, caller));
  expect([...others].filter((status) => status !== 429)).toEqual([]);
  return count;
}

function upload({ url }: AttackedService, formId: string, address: string): Promise<Response> {
  const headers = { 'x-forwarded-for': address, 'content-type': 'application/octet-stream' };
  return fetch(`${url}/api/forms/${formId}/uploads?field=cv`, { method: 'POST', headers, body: file });
}

function post({ url }: AttackedService, path: string, body: object, address: string): Promise<Response> {
  const headers = { 'x-forwarded-for': address, 'content-type': 'application/json' };
  return fetch(new URL(path, url), { method: 'POST', headers, body: JSON.stringify(body) });
}

async function givenKeylessForm(service: AttackedService, address: string): Promise<string> {
  const created = await post(service, '/api/forms/create', definition, address);
  const { form } = (await created.json()) as { form: { id: string; activate_url: string } };
  await post(service, form.activate_url, { email: 'owner@example.com' }, address);
  return form.id;
}

function lengthOf({ type }: { type: string }): object {
  return type === 'textarea' ? { maxLength: 100_000 } : {};
}

function sizeOf(folder: string): number {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true });
  return files
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0);
}
