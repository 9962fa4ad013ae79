import { once } from 'node:events';
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2';
import { connect } from 'node:net';
import { expect, it } from 'vitest';
import { type AttackedService, HEALTH_MS, harmDone, MEMORY_MIB, sharedService } from './attacked-service.ts';

const CONNECTIONS = 40;
const STREAMS = 100;
/** As much as one request may have. */
const HEADER = 'x'.repeat(15_000);

it('keeps little of what one client without a key has waiting on all its connections', {
  timeout: 60_000,
}, async () => {
  const service = await sharedService('pglite');
  const statuses: (number | undefined)[] = [];

  const harm = await harmDone(service, async () => {
    using opened = new DisposableStack();
    for (let connection = 0; connection < CONNECTIONS; connection += 1) {
      const session = opened.adopt(openFrom(service, '127.0.0.2'), (held) => held.destroy());
      for (let stream = 0; stream < STREAMS; stream += 1) beginCall(session, statuses);
      await once(session, 'remoteSettings');
      await new Promise((answered) => session.ping(answered));
    }
  });
  const again = openFrom(service, '127.0.0.2');
  const after = await once(again.request({ ':path': '/none' }).resume(), 'response');
  again.destroy();

  expect(statuses.filter((status) => status === 429).length).toBeGreaterThan(CONNECTIONS * STREAMS - 500);
  expect(new Set(statuses)).toEqual(new Set([429]));
  expect(after[0][':status']).toBe(404);
  expect(harm.slowestHealthMs).toBeLessThan(HEALTH_MS);
  expect(harm.addedMib).toBeLessThan(MEMORY_MIB);
});

function openFrom({ grpcUrl }: AttackedService, localAddress: string): ClientHttp2Session {
  const { hostname: host, port } = new URL(grpcUrl);
  const session = connectHttp2(grpcUrl, {
    createConnection: () => connect({ host, port: Number(port), localAddress }),
  });
  return session.on('error', () => undefined);
}

/** Begins a call whose message never comes, and notes the status of its answer. */
function beginCall(session: ClientHttp2Session, statuses: (number | undefined)[]): void {
  const stream = session.request({
    ':method': 'POST',
    ':path': '/headlessforms.v1.SubmissionsService/CreateSubmission',
    'content-type': 'application/json',
    'x-large': HEADER,
  });
  stream.on('error', () => undefined);
  stream.on('response', ({ ':status': status }) => statuses.push(status)).resume();
}
