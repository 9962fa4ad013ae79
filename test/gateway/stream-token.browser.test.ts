import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { startBrowser, startSite } from '../support/browser.ts';
import { noBrowser } from '../support/chromium.ts';
import { startService } from '../support/server.ts';
import { until } from '../support/until.ts';

const CUTS = 3;

describe.skipIf(noBrowser)('a page of another origin', { timeout: 90_000 }, () => {
  it('watches submissions by EventSource, and misses none while its connection breaks again and again', async () => {
    let html = '';
    await using site = await startSite(() => html);
    await using service = await startService({ env: { RPC_ALLOWED_ORIGINS: site.origin } });
    await using proxy = await startCuttingProxy(service.url);
    await using browser = await startBrowser(service);
    const { id: formId } = await service.givenPublishedForm();
    const { token } = (await service.post('/v1/streams/token', { form_id: formId })).json;
    html = watcherOf(`${proxy.url}/v1/forms/${formId}/submissions/stream?token=${token}`);
    await using page = await browser.open(site.origin);
    const awaitOpened = (times: number) => until(() => page.evaluate(`opened >= ${times}`));
    const sent: string[] = [];
    const submit = async () => {
      const answers = { email: 'a@b.example' };
      sent.push((await service.post(`/api/forms/${formId}/submissions`, { answers })).json.submission_id);
    };

    for (let cut = 1; cut <= CUTS; cut += 1) {
      await awaitOpened(cut);
      await submit();
      proxy.cut();
      await submit();
    }
    await awaitOpened(CUTS + 1);
    await submit();

    await until(async () => (await seenOn(page)).includes(sent.at(-1) ?? ''));
    expect(new Set(await seenOn(page))).toEqual(new Set(sent));
  });

  it('reads, changes and sees limits below /v1 where RPC_ALLOWED_ORIGINS names it, and nothing elsewhere', async () => {
    await using named = await startSite(() => '<!doctype html><title>Dashboard</title>');
    await using other = await startSite(() => '<!doctype html><title>Elsewhere</title>');
    await using service = await startService({
      env: { RPC_ALLOWED_ORIGINS: named.origin, RATE_LIMIT: 'on', RATE_LIMIT_KEY: '100' },
    });
    const { id: formId } = await service.givenPublishedForm();
    await using browser = await startBrowser(service);
    const [allowed, refused] = [await browser.open(named.origin), await browser.open(other.origin)];
    const patch = callFrom(service, 'PATCH', `/v1/forms/${formId}`, { key: 'contact' });
    const list = callFrom(service, 'GET', '/v1/forms?limit=1');

    const replies = [await allowed.evaluate(list), await allowed.evaluate(patch)];
    const elsewhere = [await refused.evaluate(list), await refused.evaluate(patch)];

    expect(replies).toEqual(
      Array(2).fill({ status: 200, id: expect.stringMatching(/./), rate: expect.stringContaining('r=') }),
    );
    expect(elsewhere).toEqual(['TypeError', 'TypeError']);
    expect((await service.get(`/v1/forms/${formId}`)).json.form.key).toBe('contact');
    expect(browser.problems.splice(0).every((problem) => /CORS|ERR_FAILED/.test(problem))).toBe(true);
  });
});

function seenOn(page: Page): Promise<string[]> {
  return page.evaluate('seen');
}

function watcherOf(url: string): string {
  return `<!doctype html><title>Dashboard</title><script>
    let opened = 0;
    const seen = [];
    const source = new EventSource(${JSON.stringify(url)});
    source.onopen = () => (opened += 1);
    source.addEventListener('submission', ({ data }) => seen.push(JSON.parse(data).submission.id));
  </script>`;
}

/** A script that calls a route with the service's key, and tells what a page may read of the reply. */
function callFrom(
  service: { url: string; key: string },
  method: string,
  path: string,
  body?: object,
): string {
  const init = {
    method,
    headers: { authorization: `Bearer ${service.key}`, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  };
  return `fetch(${JSON.stringify(service.url + path)}, ${JSON.stringify(init)}).then(
    ({ status, headers }) => ({ status, id: headers.get('x-request-id'), rate: headers.get('ratelimit') }),
    ({ name }) => name)`;
}

/** A proxy that passes bytes on, and ends all connections when told to. */
async function startCuttingProxy(to: string) {
  const { hostname, port } = new URL(to);
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect(Number(port), hostname);
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(socket);
      socket.on('error', () => other.destroy()).on('close', () => other.destroy());
      socket.on('close', () => sockets.delete(socket)).pipe(other);
    }
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cut,
    async [Symbol.asyncDispose]() {
      server.close();
      cut();
      await once(server, 'close');
    },
  };
}
