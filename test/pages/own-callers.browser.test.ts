import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startBrowser, startSite, type TestBrowser } from '../support/browser.ts';
import { noBrowser } from '../support/chromium.ts';
import { startService, type TestService } from '../support/server.ts';

describe.skipIf(noBrowser)('a service without keys', () => {
  let service: TestService;
  let browser: TestBrowser;
  beforeAll(async () => {
    service = await startService({ env: { REQUIRE_API_KEY: 'false' } });
    browser = await startBrowser(service);
  });
  afterAll(async () => {
    await browser?.[Symbol.asyncDispose]();
    await service?.[Symbol.asyncDispose]();
  });

  const body = JSON.stringify({ url: 'http://127.0.0.1:9/', events: ['submission.created'] });

  it.each(['127.0.0.1', 'localhost'])(
    'takes no webhook from a page of another origin, at %s',
    async (host) => {
      await using site = await startSite(() => '<!doctype html><title>Evil</title>');
      const page = await browser.open(site.origin.replace('127.0.0.1', host));

      const sent = await page.evaluate(
        async ({ url, text }) => {
          const types = [{}, { type: 'text/plain' }, { type: 'application/x-www-form-urlencoded' }];
          const bodies = types.map((options) => new Blob([text], options));
          const send = (content: Blob) => fetch(url, { method: 'POST', mode: 'no-cors', body: content });
          const replies = await Promise.all(bodies.map(send));
          return replies.map(({ type }) => type);
        },
        { url: `${service.url}/v1/webhooks`, text: body },
      );

      // They were sent and answered: the page only can't read what.
      expect(sent).toEqual(['opaque', 'opaque', 'opaque']);
      expect((await service.get('/v1/webhooks')).json.webhooks).toEqual([]);
    },
  );

  it('takes no webhook from a page whose name was pointed at it', async () => {
    const { port } = new URL(service.url);
    const page = await browser.open(`http://evil.rebound.example:${port}/health`, anyPolicy);

    const status = await page.evaluate(postJson, ['/v1/webhooks', body]);

    expect(status).toBe(401);
    expect((await service.get('/v1/webhooks')).json.webhooks).toEqual([]);
  });

  it('answers pages of its own origin', async () => {
    const page = await browser.open('/health', anyPolicy);

    expect(await page.evaluate(postJson, ['/v1/webhooks', body])).toBe(201);
  });
});

/** A page as its author would write it: replies of the API forbid all fetching. */
const anyPolicy = { bypassCSP: true };

async function postJson([path = '', body = '']: string[]): Promise<number> {
  const reply = await fetch(path, { method: 'POST', body, headers: { 'content-type': 'application/json' } });
  return reply.status;
}
