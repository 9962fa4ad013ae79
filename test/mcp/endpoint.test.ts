import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startService, type TestService } from '../support/server.ts';

const initialize = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } },
};

describe('/mcp', () => {
  let service: TestService;
  beforeAll(async () => {
    service = await startService({ env: { RPC_ALLOWED_ORIGINS: 'https://admin.example.com' } });
  }, 60_000);
  afterAll(() => service?.[Symbol.asyncDispose]());

  /** BASE_URL of a service in tests. */
  const baseUrl = () => service.url.replace('localhost', '127.0.0.1');

  async function send(body: unknown, headers: Record<string, string> = {}, method = 'POST') {
    const response = await fetch(`${service.url}/mcp`, {
      method,
      headers: {
        authorization: `Bearer ${service.key}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...headers,
      },
      ...(method === 'POST' && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    return { status: response.status, headers: response.headers, text: await response.text() };
  }

  it('refuses callers without a key and with a wrong one', async () => {
    const none = await send(initialize, { authorization: '' });
    const wrong = await send(initialize, { authorization: 'Bearer hfs_no' });

    expect([none.status, none.headers.get('www-authenticate')]).toEqual([401, 'Bearer']);
    expect([wrong.status, wrong.headers.get('www-authenticate')]).toEqual([
      401,
      'Bearer error="invalid_token"',
    ]);
    expect(JSON.parse(none.text)).toMatchObject({
      jsonrpc: '2.0',
      id: null,
      error: { code: -32_000, data: { reason: 'missing_key' } },
    });
  });

  it('answers pages of its own origins alone', async () => {
    const own = await send(initialize, { origin: baseUrl() });
    const allowed = await send(initialize, { origin: 'https://admin.example.com' });
    const others = await Promise.all(
      ['https://evil.example', 'null', `${baseUrl()}0`, 'http://localhost'].map((origin) =>
        send(initialize, { origin }),
      ),
    );
    const preflight = await fetch(`${service.url}/mcp`, {
      method: 'OPTIONS',
      headers: { origin: 'https://admin.example.com', 'access-control-request-method': 'POST' },
    });

    expect([own.status, allowed.status]).toEqual([200, 200]);
    expect(allowed.headers.get('access-control-allow-origin')).toBe('https://admin.example.com');
    expect(others.map(({ status }) => status)).toEqual([403, 403, 403, 403]);
    expect(others.map(({ headers }) => headers.get('cache-control'))).toEqual(others.map(() => 'no-store'));
    expect(preflight.status).toBe(204);
  });

  it('bounds what it reads, and takes one message at a time', async () => {
    const large = await send({ ...initialize, padding: 'x'.repeat(300_000) });
    const many = await send({
      ...initialize,
      method: 'tools/call',
      params: { name: 'list_forms', arguments: { a: Array(60_000).fill(0) } },
    });
    const answers = { a: Array(11_000).fill(0) };
    const values = await send({
      ...initialize,
      method: 'tools/call',
      params: { name: 'submit_answers', arguments: { form_id: 'form_x', answers } },
    });
    const list = await send([initialize, initialize]);
    const text = await send('{');
    const get = await send(undefined, {}, 'GET');

    expect([large, many, list, text, get].map(({ status }) => status)).toEqual([413, 413, 400, 400, 405]);
    expect(values.text).toContain('more than 10000 values');
    expect(service.logged).toEqual([]);
  });

  it('holds nothing open for clients that subscribe', async () => {
    const reply = await send(
      {
        jsonrpc: '2.0',
        id: 1,
        method: 'subscriptions/listen',
        params: {
          notifications: { toolsListChanged: true },
          _meta: {
            'io.modelcontextprotocol/protocolVersion': '2026-07-28',
            'io.modelcontextprotocol/clientInfo': { name: 'c', version: '1' },
            'io.modelcontextprotocol/clientCapabilities': {},
          },
        },
      },
      { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'subscriptions/listen' },
    );

    expect(reply.text).toContain('"error"');
  });

  it('says where it is to those who look for it', async () => {
    const reply = await fetch(`${service.url}/llms.txt`);

    expect([reply.status, reply.headers.get('access-control-allow-origin')]).toEqual([200, '*']);
    expect(await reply.text()).toContain(`${baseUrl()}/mcp`);
  });
});

describe('/mcp where no key is required', () => {
  it('takes calls without one from its own host, with the tools that need none', async () => {
    await using service = await startService({ env: { REQUIRE_API_KEY: 'false' } });
    const send = (headers: Record<string, string> = {}) =>
      fetch(`${service.url}/mcp`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          ...headers,
        },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
      });

    const open = await send();
    const text = await open.text();
    const page = await send({ 'sec-fetch-site': 'cross-site' });

    expect(open.status).toBe(200);
    expect(text).toContain('"create_form"');
    expect(text).not.toContain('"list_submissions"');
    expect(page.status).toBe(401);
  });
});
