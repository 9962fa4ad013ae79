import { createClient, type Interceptor } from '@connectrpc/connect';
import {
  compressionGzip,
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from '@connectrpc/connect-node';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { UploadsService } from '../../gen/headlessforms/v1/uploads_pb.js';
import { type Site, startBrowser, startSite, type TestBrowser } from '../support/browser.ts';
import { noBrowser } from '../support/chromium.ts';
import { startService, type TestService } from '../support/server.ts';
import { bundle } from '../support/web-client.ts';
import { type Given, givenLargeForm } from './given.ts';
import { everyOperation, everyResult } from './operations.ts';

const opened = new AsyncDisposableStack();
let service: TestService;
let site: Site;
let given: Given;

beforeAll(async () => {
  const script = await bundle('test/clients/web-operations.ts', 'web');
  site = opened.use(await startSite(() => `<!doctype html><title>Site</title><script>${script}</script>`));
  service = opened.use(await startService({ env: { RPC_ALLOWED_ORIGINS: site.origin } }));
  given = await givenLargeForm(service);
}, 120_000);
afterAll(() => opened.disposeAsync());

describe('in Node', { timeout: 60_000 }, () => {
  const protocols = ['connect', 'connect over HTTP/2', 'grpc-web', 'grpc'] as const;

  it.each(protocols)('%s does every operation, and sends gzip', async (protocol) => {
    const transport = transportOf(protocol);

    expect(await everyOperation(transport, given)).toEqual(everyResult);
    const parts = Array.from({ length: 20 }, () => ({
      target: { case: 'formId' as const, value: given.largeFormId },
      fieldId: 'cv',
      content: new Uint8Array(100_000),
    }));
    const { upload } = await createClient(UploadsService, transport).uploadFile(eachOf(parts));
    expect(upload?.size).toBe(2_000_000);
  });

  function transportOf(protocol: (typeof protocols)[number]) {
    const authorize: Interceptor = (next) => (request) => {
      request.header.set('authorization', `Bearer ${service.key}`);
      return next(request);
    };
    const interceptors = [authorize];
    const options = { interceptors, sendCompression: compressionGzip, acceptCompression: [compressionGzip] };
    switch (protocol) {
      case 'connect':
        return createConnectTransport({ ...options, baseUrl: service.url, httpVersion: '1.1' });
      case 'connect over HTTP/2':
        return createConnectTransport({ ...options, baseUrl: service.grpcUrl, httpVersion: '2' });
      case 'grpc-web':
        return createGrpcWebTransport({ ...options, baseUrl: service.url, httpVersion: '1.1' });
      case 'grpc':
        return createGrpcTransport({ ...options, baseUrl: service.grpcUrl });
    }
  }
});

describe.skipIf(noBrowser)('in Chromium, on a page of another origin', { timeout: 60_000 }, () => {
  let browser: TestBrowser;

  beforeAll(async () => {
    browser = opened.use(await startBrowser(service));
  });

  it.each(['connect', 'connect-get', 'grpc-web'])('%s does every operation', async (protocol) => {
    const page = await browser.open(site.origin);
    const values = JSON.stringify([protocol, service.url, service.key, given]);

    expect(await page.evaluate(`web.everyWebOperation(...${values}).catch(String)`)).toEqual(everyResult);
  });
});

async function* eachOf<T>(items: T[]): AsyncGenerator<T> {
  yield* items;
}
