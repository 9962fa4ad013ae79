import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { serve } from '../support/serve.ts';

/** The least that a page can cost: bare `node:http` sending the same headers and bytes. */
serve(async ({ headers, body }: PageLimitInput) => {
  const bytes = Buffer.from(body);
  const server = createServer((_, response) => {
    response.writeHead(200, { ...headers, 'content-length': bytes.length });
    response.end(bytes);
  });
  server.listen(0, '127.0.0.1');
  await new Promise((listening) => server.once('listening', listening));
  const address = server.address() as AddressInfo;
  return { ready: { port: address.port } };
});

type PageLimitInput = { headers: Record<string, string>; body: string };
