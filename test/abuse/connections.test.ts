import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { expect, it } from 'vitest';
import { until } from '../support/until.ts';
import {
  type AttackedService,
  givenForm,
  HEALTH_MS,
  harmDone,
  MEMORY_MIB,
  sharedService,
} from './attacked-service.ts';

it('frees the connections of those who never end a request nor close their own side', {
  timeout: 60_000,
}, async () => {
  const service = await sharedService('pglite');
  const atRest = openFiles(service);

  let most = 0;
  const harm = await harmDone(service, async () => {
    using sockets = new DisposableStack();
    for (let wave = 0; wave < 15; wave += 1) {
      const address = `127.0.0.${2 + (wave % 3)}`;
      const opened = await Promise.all(Array.from({ length: 250 }, () => openUnended(service.url, address)));
      for (const socket of opened) sockets.defer(() => socket.destroy());
    }
    most = openFiles(service) - atRest;
    await until(
      () => openFiles(service) < atRest + 100,
      20_000,
      () => `${openFiles(service)} files are open`,
    );
  });

  // What one address may open, times three.
  expect(most).toBeLessThan(3 * 1_100);
  expect(most).toBeGreaterThan(1_000);
  expect(harm.slowestHealthMs).toBeLessThan(HEALTH_MS);
  expect(harm.addedMib).toBeLessThan(MEMORY_MIB);
});

it('does the work of one request at a time for those who send thousands without waiting for answers', {
  timeout: 60_000,
}, async () => {
  const service = await sharedService('pglite');
  const request = 'GET /openapi.json HTTP/1.1\r\nhost: a\r\n\r\n';

  const harm = await harmDone(service, async () => {
    using sockets = new DisposableStack();
    const { hostname: host, port } = new URL(service.url);
    for (const requests of [100, 1_500, 100, 1_500]) {
      const socket = connect({ host, port: Number(port), localAddress: '127.0.0.2' });
      sockets.defer(() => socket.destroy());
      socket.on('error', () => undefined).pause();
      await new Promise((written) => socket.write(request.repeat(requests), written));
    }
    await sleep(2_000);
  });

  expect(harm.slowestHealthMs).toBeLessThan(HEALTH_MS);
  expect(harm.addedMib).toBeLessThan(MEMORY_MIB);
});

it('keeps nobody waiting while one client makes hundreds of calls at once', { timeout: 60_000 }, async () => {
  const service = await sharedService('pglite');
  const formId = await givenForm(service, largeForm);
  const statuses = new Set<unknown>();

  const harm = await harmDone(service, async () => {
    using opened = new DisposableStack();
    const { hostname: host, port } = new URL(service.grpcUrl);
    const sessions = Array.from({ length: 6 }, () => {
      const createConnection = () => connect({ host, port: Number(port), localAddress: '127.0.0.2' });
      return opened.adopt(connectHttp2(service.grpcUrl, { createConnection }), (session) =>
        session.destroy(),
      );
    });
    const calls = sessions.flatMap((session) => Array.from({ length: 100 }, () => getForm(session, formId)));
    for (const status of await Promise.all(calls)) statuses.add(status);
  });

  // Beyond those that may wait they are refused.
  expect(statuses).toEqual(new Set([200, 429]));
  expect(harm.slowestHealthMs).toBeLessThan(HEALTH_MS);
  expect(harm.addedMib).toBeLessThan(MEMORY_MIB);
});

it('keeps nobody waiting while one client asks for hundreds of pages at once', {
  timeout: 60_000,
}, async () => {
  const service = await sharedService('pglite');
  const formId = await givenForm(service, largeForm);
  const statuses = new Set<unknown>();

  const harm = await harmDone(service, async () => {
    using opened = new DisposableStack();
    const options = { localAddress: '127.0.0.9', connections: 200 };
    const agent = opened.adopt(new Agent(options), (each) => void each.destroy());
    const pages = Array.from({ length: 400 }, async () => {
      const reply = await request(`${service.url}/f/${formId}`, { dispatcher: agent });
      await reply.body.dump();
      return reply.statusCode;
    });
    for (const status of await Promise.all(pages)) statuses.add(status);
  });

  expect(statuses).toEqual(new Set([200]));
  expect(harm.slowestHealthMs).toBeLessThan(HEALTH_MS);
  expect(harm.addedMib).toBeLessThan(MEMORY_MIB);
});

const options = Array.from({ length: 100 }, (_, index) => ({ label: `Option ${index}`, value: `${index}` }));
/** Its page and its answer by RPC take some 3 ms to write. */
const largeForm = {
  fields: Array.from({ length: 40 }, (_, index) => ({ id: `f${index}`, type: 'select', options })),
};

/** Asks for a form as its page does, and gives the status of the answer. */
async function getForm(session: ClientHttp2Session, formId: string): Promise<unknown> {
  const path = '/headlessforms.internal.v1.HostedService/GetHosted';
  const stream = session.request({ ':method': 'POST', ':path': path, 'content-type': 'application/json' });
  stream.end(JSON.stringify({ formId }));
  const [{ ':status': status }] = await once(stream, 'response');
  await once(stream.resume(), 'close');
  return status;
}

/** A connection in the middle of its headers, which hears when the server ends it and does nothing about it. */
async function openUnended(url: string, localAddress: string): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), localAddress, allowHalfOpen: true });
  socket.on('error', () => undefined).resume();
  await Promise.race([once(socket, 'connect'), new Promise((resolve) => socket.once('close', resolve))]);
  socket.write(`GET / HTTP/1.1\r\nhost: a\r\nx: ${'x'.repeat(1_000)}`);
  return socket;
}

function openFiles({ process }: AttackedService): number {
  return readdirSync(`/proc/${process.child.pid}/fd`).length;
}
