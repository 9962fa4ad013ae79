import { createClient, type Interceptor } from '@connectrpc/connect';
import {
  compressionGzip,
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from '@connectrpc/connect-node';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { UploadsService } from '../../gen/headlessforms/v1/uploads_pb.js';
import { retryCalls } from '../../packages/client/src/client.ts';
import { type Site, startBrowser, startSite, type TestBrowser } from '../support/browser.ts';
import { noBrowser } from '../support/chromium.ts';
import { startService, type TestService } from '../support/server.ts';
import { bundle } from '../support/web-client.ts';
import { type Given, givenLargeForm, repeated } from './given.ts';
import { type LossyProxy, startLossyProxy } from './lossy-proxy.ts';
import { everyOperation, everyResult } from './operations.ts';

const opened = new AsyncDisposableStack();
let service: TestService;
let lossy: LossyProxy;
let site: Site;
let given: Given;

beforeAll(async () => {
  const script = await bundle('test/clients/web-operations.ts', 'web');
  site = opened.use(await startSite(() => `<!doctype html><title>Site</title><script>${script}</script>`));
  service = opened.use(await startService({ env: { RPC_ALLOWED_ORIGINS: site.origin } }));
  lossy = opened.use(await startLossyProxy(service));
  given = await givenLargeForm(service);
}, 120_000);
afterAll(() => opened.disposeAsync());

describe('in Node', { timeout: 60_000 }, () => {
  const protocols = ['connect', 'connect over HTTP/2', 'grpc-web', 'grpc'] as const;

  it.each(protocols)('%s does every operation, and sends gzip', async (protocol) => {
    const transport = transportOf(protocol, service);
    const repeating = transportOf(protocol, lossy, retryCalls());

    expect(await everyOperation(transport, repeating, given)).toEqual(everyResult);
    expect(lossy.takeCalls()).toEqual(repeated(1));
    const parts = Array.from({ length: 20 }, () => ({
      target: { case: 'formId' as const, value: given.largeFormId },
      fieldId: 'cv',
      content: new Uint8Array(100_000),
    }));
    const { upload } = await createClient(UploadsService, transport).uploadFile(eachOf(parts));
    expect(upload?.size).toBe(2_000_000);
  });

  function transportOf(
    protocol: (typeof protocols)[number],
    { url, grpcUrl }: { url: string; grpcUrl: string },
    ...more: Interceptor[]
  ) {
    const authorize: Interceptor = (next) => (request) => {
      // A call may bring another credential.
      if (!request.header.has('authorization')) request.header.set('authorization', `Bearer ${service.key}`);
      return next(request);
    };
    const interceptors = [...more, authorize];
    const options = { interceptors, sendCompression: compressionGzip, acceptCompression: [compressionGzip] };
    switch (protocol) {
      case 'connect':
        return createConnectTransport({ ...options, baseUrl: url, httpVersion: '1.1' });
      case 'connect over HTTP/2':
        return createConnectTransport({ ...options, baseUrl: grpcUrl, httpVersion: '2' });
      case 'grpc-web':
        return createGrpcWebTransport({ ...options, baseUrl: url, httpVersion: '1.1' });
      case 'grpc':
        return createGrpcTransport({ ...options, baseUrl: grpcUrl });
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
    const values = JSON.stringify([protocol, service.url, lossy.url, service.key, given]);

    expect(await page.evaluate(`web.everyWebOperation(...${values}).catch(String)`)).toEqual(everyResult);
    expect(lossy.takeCalls()).toEqual(repeated(1));
  });
});

async function* eachOf<T>(items: T[]): AsyncGenerator<T> {
  yield* items;
}
