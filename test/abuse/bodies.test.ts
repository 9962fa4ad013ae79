import { connect } from 'node:http2';
import { connect as connectTcp } from 'node:net';
import { expect, it } from 'vitest';
import { engines } from '../support/database.ts';
import { until } from '../support/until.ts';
import { type HeldSocket, openSocket } from '../support/wire.ts';
import { type AttackedService, HEALTH_MS, harmDone, MEMORY_MIB, sharedService } from './attacked-service.ts';

const uploadPath = '/headlessforms.v1.UploadsService/CreateUpload';
const part = Buffer.alloc(2 * 1024 * 1024);

/** 200 bodies, 400 MiB altogether, none of which is ever whole. */
const attacks: [string, (service: AttackedService, from: string, held: DisposableStack) => Promise<void>][] =
  [
    ['100 streams of one connection', ({ grpcUrl }, from, held) => holdStreams(grpcUrl, from, held)],
    [
      '100 streams of one HTTP/2 connection to the port of HTTP/1',
      ({ url }, from, held) => holdStreams(url, from, held),
    ],
    ['100 connections', holdConnections],
  ];

it.each(attacks.flatMap(([what, hold]) => engines.map((engine) => ({ what, hold, engine }))))(
  'bodies that never end hold little memory, and keep nobody else out: $what from each of two addresses, on $engine',
  { timeout: 60_000 },
  async ({ engine, hold }) => {
    const service = await sharedService(engine);
    using held = new DisposableStack();
    // What buffers leave behind before they are collected belongs to the service at rest.
    for (let count = 0; count < 30; count += 1) await sendWhole(service);

    const harm = await harmDone(service, async () => {
      await Promise.all(['127.0.0.2', '127.0.0.3'].map((address) => hold(service, address, held)));
      expect(await submit(service)).toBe(201);
    });

    expect(harm.slowestHealthMs).toBeLessThan(HEALTH_MS);
    expect(harm.addedMib).toBeLessThan(MEMORY_MIB);
  },
);

async function holdStreams(url: string, from: string, held: DisposableStack): Promise<void> {
  const { hostname, port } = new URL(url);
  const session = connect(url, {
    createConnection: () => connectTcp({ host: hostname, port: Number(port), localAddress: from }),
  });
  held.defer(() => session.destroy());
  session.on('error', () => undefined);
  const streams = Array.from({ length: 100 }, () => {
    const stream = session.request({
      ':method': 'POST',
      ':path': uploadPath,
      'content-type': 'application/proto',
    });
    stream.on('error', () => undefined).resume();
    stream.write(part);
    return stream;
  });
  await until(() => streams.filter((stream) => stream.closed).length > 80, 30_000);
}

async function holdConnections({ url }: AttackedService, from: string, held: DisposableStack): Promise<void> {
  const head = `POST ${uploadPath} HTTP/1.1\r\nhost: a\r\ncontent-type: application/proto\r\n`;
  const connections: HeldSocket[] = [];
  for (let count = 0; count < 100; count += 1) {
    const connection = held.use(await openSocket(url, from));
    connection.socket.write(`${head}content-length: ${part.length + 1}\r\n\r\n`);
    connection.socket.write(part);
    connections.push(connection);
  }
  // For want of room, and of one address by the rate of its uploads.
  const isRefused = ({ text }: HeldSocket) => /^HTTP\/1\.1 (?:503|429) /.test(text());
  await until(() => connections.filter(isRefused).length > 80, 30_000);
}

/** A body that is read to its end, and refused as no message. */
async function sendWhole({ url }: AttackedService): Promise<void> {
  const headers = { 'content-type': 'application/proto' };
  const response = await fetch(url + uploadPath, { method: 'POST', headers, body: part });
  await response.text();
}

/** The status of a submission that somebody else makes without a key. */
async function submit({ url, formId }: AttackedService): Promise<number> {
  const response = await fetch(`${url}/api/forms/${formId}/submissions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ answers: { email: 'ada@example.com', message: 'x'.repeat(5_000) } }),
  });
  await response.text();
  return response.status;
}
