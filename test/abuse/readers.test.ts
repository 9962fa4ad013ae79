import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { definitionSchema } from '../../src/domain/definition/definition.ts';
import { fieldTypes } from '../../src/domain/fields/field.ts';
import { type AttackedService, givenForm, sharedService, UNLIMITED_RATES } from './attacked-service.ts';
import { alphabets, type Call, type Reader, readers, sampleDefinition } from './readers.ts';
import {
  MOST_MS,
  measureSlowness,
  slowness,
  type Timed,
  TRIES,
  TRIES_OF_EXCESS,
  timeOf,
} from './reading-time.ts';

/** It reads some fifteen thousand texts and values. */
const TIMEOUT_MS = 240_000;

it('knows what every type of field, and every part of a definition, is written with', () => {
  expect(Object.keys(alphabets).toSorted()).toEqual([...fieldTypes].toSorted());
  expect(Object.keys(sampleDefinition).toSorted()).toEqual(Object.keys(definitionSchema.shape).toSorted());
});

it('reads nothing for long, whatever it is, and the slowest through their doors', {
  timeout: TIMEOUT_MS,
}, async () => {
  const timed: (Timed & Pick<Reader, 'door'>)[] = [];
  for (const { name, inputs, read, door } of readers()) {
    for (const input of inputs) timed.push({ ...(await timeOf({ reader: name, read, ...input })), door });
  }
  const slowest = timed.toSorted((one, other) => other.worst - one.worst).slice(0, 10);
  const service = await sharedService('pglite', UNLIMITED_RATES);
  const formId = await givenForm(service, sampleDefinition);
  const throughDoors: string[] = [];
  await measureSlowness();
  for (const { reader, name, worst, made, door } of slowest) {
    const { status, loopMs } = await answered(service, door(made), formId);
    console.log(`${worst.toFixed(1)} ms, by call ${loopMs.toFixed(1)} ms and ${status}: ${reader}, ${name}`);
    if (loopMs > MOST_MS * slowness || status >= 500)
      throughDoors.push(`${reader}, ${name}: ${status} in ${loopMs} ms`);
  }

  expect(timed.length).toBeGreaterThan(10_000);
  expect(timed.flatMap(({ reader, fault }) => (fault === undefined ? [] : `${reader}, ${fault}`))).toEqual(
    [],
  );
  expect(throughDoors).toEqual([]);
});

/** The status of the answer to a call, and what it took of the processor in the thread of the service's event loop. */
async function answered({ url, key, process }: AttackedService, call: Call, formId: string) {
  const loopMs = () =>
    Number(readFileSync(`/proc/${process.child.pid}/schedstat`, 'utf8').split(' ')[0]) / 1e6;
  const named = (text: string) => text.replaceAll('FORM', formId);
  const { method, path, headers, body } = call;
  let [status, least] = [0, Number.POSITIVE_INFINITY];
  for (let n = 0; n < TRIES || (n < TRIES_OF_EXCESS && least > MOST_MS * slowness); n += 1) {
    const before = loopMs();
    const response = await fetch(url + named(path), {
      method,
      headers: { ...(call.key !== null && { authorization: `Bearer ${key}` }), ...headers },
      ...(body !== undefined && { body: named(body) }),
    });
    await response.text();
    status = response.status;
    least = Math.min(least, loopMs() - before);
  }
  return { status, loopMs: least };
}
