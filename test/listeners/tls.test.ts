import { copyFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { get } from 'node:https';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { connect as connectTls } from 'node:tls';
import { createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { Health, HealthCheckResponse_ServingStatus as Status } from '../../gen/grpc/health/v1/health_pb.js';
import { readConfig } from '../../src/config.ts';
import { watchCertificate } from '../../src/listeners/certificate.ts';
import { startListeners } from '../support/listeners.ts';
import { startService, type TestService } from '../support/server.ts';
import { temporaryFolder } from '../support/spawn.ts';
import { until } from '../support/until.ts';
import { openSocket } from '../support/wire.ts';

const pairs = join(import.meta.dirname, '../support/tls');
const folder = temporaryFolder();
const [certFile, keyFile] = [join(folder.path, 'tls.crt'), join(folder.path, 'tls.key')];
const rejectUnauthorized = false;

let service: TestService;

beforeAll(async () => {
  await use('first');
  service = await startService({ env: { TLS_CERT: certFile, TLS_KEY: keyFile } });
});
afterAll(async () => {
  await service[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

describe('TLS', () => {
  it('serves pages and REST by HTTP/1.1 to who offers both, and RPC by HTTP/2, on both ports', async () => {
    for (const url of [service.url, service.grpcUrl]) {
      const health = createClient(
        Health,
        createGrpcTransport({ baseUrl: url, nodeOptions: { rejectUnauthorized } }),
      );

      expect(await answerOf(`${url}/health`)).toBe('{"ok":true}');
      expect((await health.check({})).status).toBe(Status.SERVING);
    }
    expect(await chosen(service.url, ['h2', 'http/1.1'])).toMatchObject({ protocol: 'http/1.1' });
    expect(await chosen(service.grpcUrl, ['http/1.1', 'h2'])).toMatchObject({ protocol: 'h2' });
  });

  it('uses another certificate from when its files change, and none that has no key', async () => {
    expect(await chosen(service.url, ['h2'])).toMatchObject({ name: 'first.localhost' });

    await copyFile(join(pairs, 'second.crt'), certFile);
    await until(() => service.logged.some((line) => line.includes('the former ones stay in use')));
    expect(await chosen(service.url, ['h2'])).toMatchObject({ name: 'first.localhost' });
    await use('second');

    await until(async () => (await chosen(service.grpcUrl, ['h2'])).name === 'second.localhost');
    expect(await chosen(service.url, ['h2'])).toMatchObject({ name: 'second.localhost' });
  });

  it('has browsers keep to it, and takes no CBC', async () => {
    const { headers } = await new Promise<IncomingMessage>((resolve, reject) => {
      get(`${service.url}/health`, { rejectUnauthorized }, resolve).on('error', reject);
    });
    const cipherOf = (ciphers: string) =>
      new Promise<string>((resolve, reject) => {
        const { hostname, port } = new URL(service.url);
        const options = {
          host: hostname,
          port: Number(port),
          rejectUnauthorized,
          maxVersion: 'TLSv1.2' as const,
        };
        const socket = connectTls({ ...options, ciphers }, () => {
          resolve(socket.getCipher().name);
          socket.destroy();
        });
        socket.on('error', reject);
      });

    expect(headers['strict-transport-security']).toBe('max-age=31536000');
    expect(await cipherOf('ECDHE+AESGCM')).toMatch(/GCM/);
    await expect(cipherOf('ECDHE+AES:!AESGCM:!AESCCM')).rejects.toThrow();
  });

  it('ends connections that do not begin, or do not go on', async () => {
    const timeOuts = {
      headersMs: 100,
      http1IdleMs: 100,
      http2IdleMs: 100,
      lingerMs: 100,
      checkEveryMs: 20,
      http2CheckMs: 20,
    };
    await using listeners = await startListeners({ timeOuts, tls: { certFile, keyFile } });
    using silent = await openSocket(listeners.url);
    const ended = ['http/1.1', 'h2'].map((protocol) => {
      const socket = open(listeners.url, [protocol]).resume();
      return new Promise((resolve) => socket.once('close', resolve).on('error', () => undefined));
    });

    await silent.ended;
    await Promise.all(ended);
  });

  it('says once of files that can’t be used why, and again when they can', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    using _ = { [Symbol.dispose]: () => vi.useRealTimers() };
    using later = temporaryFolder();
    const files = { certFile: join(later.path, 'tls.crt'), keyFile: join(later.path, 'tls.key') };
    const first = { cert: Buffer.from('a'), key: Buffer.from('b') };
    const said: string[] = [];
    const say = (_facts: unknown, text?: string) => void said.push(text ?? String(_facts));
    const log = { debug() {}, error() {}, info: say, warn: say };
    using _watch = watchCertificate(files, first, { changed() {}, log });

    vi.advanceTimersByTime(3_000);
    await until(() => said.length > 0);
    await copyFile(join(pairs, 'first.crt'), files.certFile);
    await copyFile(join(pairs, 'first.key'), files.keyFile);
    vi.advanceTimersByTime(1_000);
    await until(() => said.some((text) => text.includes('have changed')));

    expect(said).toEqual([
      "TLS_CERT and TLS_KEY can't be used now; the former ones stay in use.",
      'TLS_CERT and TLS_KEY have changed; new connections use them.',
    ]);
  });

  it.each([
    ['no certificate', '/nowhere.crt', join(pairs, 'first.key'), 'TLS_CERT: can'],
    ['what is no certificate', import.meta.filename, join(pairs, 'first.key'), 'TLS_CERT: '],
    ['what is no key', join(pairs, 'first.crt'), import.meta.filename, 'TLS_KEY: '],
    ['the key of another', join(pairs, 'first.crt'), join(pairs, 'second.key'), 'TLS_KEY: '],
  ])('does not start with %s', async (_, certificate, key, problem) => {
    const started = startListeners({ tls: { certFile: certificate, keyFile: key } });

    await expect(started).rejects.toThrow(problem);
  });

  it('needs both settings, and makes addresses https', () => {
    expect(() => readConfig({ TLS_CERT: certFile })).toThrow('TLS_KEY: needed with TLS_CERT');
    expect(readConfig({ TLS_CERT: certFile, TLS_KEY: keyFile }).baseUrl).toBe('https://localhost:8080');
  });
});

async function use(pair: string): Promise<void> {
  await copyFile(join(pairs, `${pair}.crt`), certFile);
  await copyFile(join(pairs, `${pair}.key`), keyFile);
}

function open(url: string, protocols: string[]) {
  const port = Number(new URL(url).port);
  return connectTls({ host: '127.0.0.1', port, ALPNProtocols: protocols, rejectUnauthorized });
}

/** What a connection is made with. */
async function chosen(url: string, protocols: string[]) {
  const socket = open(url, protocols);
  await new Promise((resolve, reject) => socket.once('secureConnect', resolve).once('error', reject));
  const facts = { protocol: socket.alpnProtocol, name: socket.getPeerCertificate().subject.CN };
  socket.destroy();
  return facts;
}

function answerOf(url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    get(url, { rejectUnauthorized, agent: false }, (reply) => resolve(text(reply))).once('error', reject);
  });
}
