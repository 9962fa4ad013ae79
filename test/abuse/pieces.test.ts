import { connect } from 'node:net';
import { expect, it } from 'vitest';
import { envelope, http2Part } from '../support/wire.ts';
import { HEALTH_MS, harmDone, MEMORY_MIB, sharedService } from './attacked-service.ts';

it('takes no time of others for bodies that are cut into tiny pieces', { timeout: 60_000 }, async () => {
  const service = await sharedService('pglite');
  const { url, grpcUrl, formId } = service;
  const chunk = '1\r\nx\r\n';
  const extended = `1;${'x'.repeat(100)}\r\nx\r\n`;
  const attacks: Attack[] = [
    chunked(url, `/api/forms/${formId}/submissions`, chunk),
    chunked(url, `/api/forms/${formId}/submissions`, extended),
    chunked(url, '/nowhere', chunk),
    chunked(url, '/headlessforms.v1.FormsService/CreateForm', chunk),
    inFrames(grpcUrl, '/headlessforms.v1.FormsService/CreateForm', 0),
    inFrames(grpcUrl, '/headlessforms.v1.UploadsService/UploadFile', 50),
  ];

  const harm = await harmDone(service, async () => {
    for (const attack of attacks) await Promise.all(Array.from({ length: 5 }, () => sendAll(attack)));
  });

  expect(harm.slowestHealthMs).toBeLessThan(HEALTH_MS);
  expect(harm.addedMib).toBeLessThan(MEMORY_MIB);
});

function chunked(url: string, path: string, chunk: string): Attack {
  const head = `POST ${path} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n`;
  return { url, bytes: Buffer.from(head + chunk.repeat(BYTES / chunk.length)) };
}

/** Of a message that is announced as a large one. */
function inFrames(url: string, path: string, padding: number): Attack {
  const headers = { 'content-type': 'application/grpc', te: 'trailers' };
  const begun = http2Part(path, headers, envelope(Buffer.alloc(60_000)).subarray(0, 5));
  const frame = Buffer.alloc(9 + 1 + 1 + padding);
  frame.writeUIntBE(2 + padding, 0, 3);
  frame.writeUInt8(PADDED, 4);
  frame.writeUInt32BE(1, 5);
  frame.writeUInt8(padding, 9);
  return { url, bytes: Buffer.concat([begun, Buffer.alloc(BYTES, frame)]) };
}

/** Until all is sent, or the service ends the connection. */
function sendAll({ url, bytes }: Attack): Promise<void> {
  const { hostname: host, port } = new URL(url);
  return new Promise((resolve) => {
    const socket = connect({ host, port: Number(port), localAddress: '127.0.0.2' });
    const given = setTimeout(() => socket.destroy(), MOST_MS);
    socket.on('error', () => undefined).resume();
    socket.on('close', () => {
      clearTimeout(given);
      resolve();
    });
    socket.write(bytes);
  });
}

const BYTES = 4 * 1024 * 1024;
const MOST_MS = 400;
const PADDED = 8;

type Attack = { url: string; bytes: Buffer };
