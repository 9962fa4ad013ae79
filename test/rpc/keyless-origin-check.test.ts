import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { connect as connectHttp2 } from 'node:http2';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startService, type TestService } from '../support/server.ts';

const webhook = { url: 'http://127.0.0.1:9/', events: ['submission.created'] };

describe('where no key is required', () => {
  let service: TestService;
  let formId: string;
  beforeAll(async () => {
    service = await startService({
      env: {
        REQUIRE_API_KEY: 'false',
        BASE_URL: 'https://forms.example',
        HOSTED_URL: 'https://pages.example/x',
      },
    });
    formId = (await service.givenPublishedForm()).id;
  });
  afterAll(() => service[Symbol.asyncDispose]());

  const json = { 'content-type': 'application/json' };
  const foreign: [string, Record<string, string>][] = [
    ['a host of others', { ...json, host: 'evil.example' }],
    ['a host that only begins like loopback', { ...json, host: '127.0.0.1.evil.example' }],
    ['an address in the network', { ...json, host: '10.0.0.7' }],
    ['a host behind a user', { ...json, host: 'localhost@evil.example' }],
    ['a foreign origin', { ...json, origin: 'https://evil.example' }],
    ['an origin of another port', { ...json, origin: 'http://127.0.0.1:1' }],
    ['an opaque origin', { ...json, origin: 'null' }],
    ['a cross-site request', { ...json, 'sec-fetch-site': 'cross-site' }],
    ['a plain text', { 'content-type': 'text/plain' }],
    ['a plain text that names JSON', { 'content-type': 'text/plain; application/json' }],
    ['an HTML form', { 'content-type': 'application/x-www-form-urlencoded' }],
    ['a body without a media type', {}],
  ];

  it.each(foreign)('refuses %s by REST and by Connect', async (_what, headers) => {
    const body = JSON.stringify(webhook);
    const rest = await send('POST', '/v1/webhooks', headers, body);
    const managed = await send('POST', `/v1/forms/${formId}/submissions`, headers, '{"answers":{}}');
    const rpc = await send('POST', '/headlessforms.v1.WebhooksService/CreateWebhook', headers, body);

    for (const { status, json } of [rest, managed]) {
      expect(status).toBe(401);
      expect(json.error).toMatchObject({ code: 'unauthorized', reason: 'origin_not_allowed' });
    }
    expect([403, 415]).toContain(rpc.status);
    expect(await webhooks()).toEqual([]);
  });

  it.each([{ host: 'evil.example' }, { 'sec-fetch-site': 'cross-site' }, { origin: 'https://evil.example' }])(
    'refuses %j without a body, and to read',
    async (headers) => {
      const replies = [
        await send('GET', '/v1/webhooks', headers),
        await send('GET', `/v1/forms/${formId}/agent-schema`, headers),
        await send('POST', '/v1/webhook-deliveries/dlv_x/replay', headers),
        await send(
          'GET',
          '/headlessforms.v1.WebhooksService/ListWebhooks?encoding=json&message=%7B%7D&connect=v1',
          headers,
        ),
      ];

      expect(replies.map(({ status }) => status)).toEqual([401, 401, 401, 403]);
    },
  );

  it.each([
    {},
    { host: 'localhost' },
    { host: 'LOCALHOST:99' },
    { host: 'app.localhost:3000' },
    { host: '[::1]:8080' },
    { host: '127.0.0.2' },
    { host: 'forms.example' },
    { host: 'pages.example:443' },
    { origin: 'https://forms.example' },
    { origin: 'https://pages.example', 'sec-fetch-site': 'cross-site' },
    { host: 'forms.example:8080', origin: 'http://forms.example:8080', 'sec-fetch-site': 'same-origin' },
    { 'sec-fetch-site': 'none' },
    { host: 'evil.example', authorization: 'key' },
  ])('answers %j', async ({ authorization, ...headers }: Record<string, string>) => {
    const withKey = { ...headers, ...(authorization && { authorization: `Bearer ${service.key}` }) };

    expect((await send('GET', '/v1/webhooks', withKey)).status).toBe(200);
  });

  it('leaves the public tier open to every page and name', async () => {
    const headers = {
      ...json,
      host: 'evil.example',
      origin: 'https://evil.example',
      'sec-fetch-site': 'cross-site',
    };
    const answers = JSON.stringify({ answers: { email: 'ada@example.com' } });

    const accepted = await send('POST', `/api/forms/${formId}/submissions`, headers, answers);
    const { session } = (await service.post(`/v1/forms/${formId}/sessions`, {})).json;
    const page = await send('GET', `/f/${session.id}`, { host: 'evil.example' });

    expect([accepted.status, page.status]).toEqual([201, 200]);
  });

  it.each([
    ['127.0.0.1:1', 0],
    ['evil.example', 7],
  ])('asks gRPC calls for their authority: %s is answered by status %i', async (authority, status) => {
    const session = connectHttp2(service.grpcUrl);
    const call = session.request({
      ':method': 'POST',
      ':path': '/headlessforms.v1.WebhooksService/ListWebhooks',
      ':authority': authority,
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    call.end(Buffer.alloc(5)).resume();
    const [trailers] = await once(call, 'trailers');
    session.close();

    expect(Number(trailers['grpc-status'])).toBe(status);
  });

  it('asks nothing of the kind where keys are required', async () => {
    await using strict = await startService();
    const headers = { host: 'evil.example', origin: 'https://evil.example' };

    const refused = await send('GET', '/v1/webhooks', headers, undefined, strict.url);

    expect(refused.json.error.reason).toBe('missing_key');
  });

  async function webhooks(): Promise<unknown[]> {
    return (await service.get('/v1/webhooks')).json.webhooks;
  }

  /** A request with exactly these headers, which `fetch` would not let through. */
  async function send(
    method: string,
    path: string,
    headers: Record<string, string>,
    body?: string,
    url = service.url,
  ) {
    const request = httpRequest(new URL(path, url), { method, headers });
    request.end(body);
    const [response] = await once(request, 'response');
    const said = await text(response);
    const isJson = response.headers['content-type']?.includes('json') === true;
    return { status: Number(response.statusCode), json: isJson ? JSON.parse(said) : undefined };
  }
});
