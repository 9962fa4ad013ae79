import { existsSync, readdirSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { newId } from '../../src/domain/ids.ts';
import { engines } from '../support/database.ts';
import {
  type AttackedService,
  givenForm,
  HEALTH_MS,
  harmDone,
  MEMORY_MIB,
  sharedService,
} from './attacked-service.ts';

/** Nobody else's: what it stores in an hour uses up the budget of its address. */
const localAddress = '127.0.0.9';
const UPLOADS = 100;
const AT_ONCE = 25;
const MIB = 1024 * 1024;
const part = Buffer.alloc(MIB, 'x');
const withFile = { fields: [{ id: 'cv', type: 'file' }] };

describe.each(engines)('uploads on %s', (engine) => {
  it('are refused unread where there is no form, lie on disk while they arrive, and leave nothing when cut off', {
    timeout: 90_000,
  }, async () => {
    const service = await sharedService(engine);
    const nowhere = `/api/forms/${newId('form', 0)}/uploads?field=cv`;
    const taken = `/api/forms/${await givenForm(service, withFile)}/uploads?field=cv`;
    const statuses: number[][] = [];
    // What buffers leave behind before they are collected belongs to the service at rest.
    await uploadAtOnce(service, `/api/forms/${await givenForm(service, withFile)}/uploads?field=cv`, 10);

    const harm = await harmDone(service, async () => {
      for (const path of [nowhere, taken]) statuses.push(await uploadAtOnce(service, path, UPLOADS));
      await Promise.all(Array.from({ length: 20 }, () => cutOff(service, taken)));
    });

    expect(new Set(statuses[0])).toEqual(new Set([404, 429]));
    expect(statuses[1]?.filter((status) => status === 429).length).toBeGreaterThanOrEqual(UPLOADS - 60);
    expect(harm.slowestHealthMs).toBeLessThanOrEqual(HEALTH_MS);
    expect(harm.addedMib).toBeLessThanOrEqual(MEMORY_MIB);
    const spool = join(service.dataDir, 'uploads', 'spool');
    expect(existsSync(spool) ? readdirSync(spool) : []).toEqual([]);
  });
});

/** Sends files of 10 MiB, and gives the status of each. */
async function uploadAtOnce(service: AttackedService, path: string, count: number): Promise<number[]> {
  const agent = new Agent({ keepAlive: false });
  const statuses: number[] = [];
  let begun = 0;
  const sender = async () => {
    while (begun < count) {
      begun += 1;
      statuses.push(await upload(service, path, agent));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, sender));
  agent.destroy();
  return statuses;
}

function upload({ url }: AttackedService, path: string, agent: Agent): Promise<number> {
  return new Promise((resolve) => {
    const call = request(`${url}${path}`, {
      agent,
      localAddress,
      method: 'POST',
      headers: { 'content-type': 'application/octet-stream', 'content-length': 10 * MIB },
    });
    call.once('response', (response) => {
      response.resume().once('close', () => resolve(response.statusCode ?? 0));
    });
    call.once('error', () => resolve(0));
    void sendParts(call, 10);
  });
}

async function sendParts(call: ReturnType<typeof request>, count: number): Promise<void> {
  for (let sent = 0; sent < count && !call.destroyed; sent += 1) {
    await new Promise((resolve) => call.write(part, resolve));
  }
  call.end();
}

/** Sends half of a file, and goes. */
async function cutOff({ url }: AttackedService, path: string): Promise<void> {
  const call = request(`${url}${path}`, {
    localAddress,
    method: 'POST',
    headers: { 'content-type': 'application/octet-stream', 'content-length': 10 * MIB },
  });
  call.once('error', () => undefined);
  await new Promise((resolve) => call.write(part, resolve));
  call.destroy();
}
