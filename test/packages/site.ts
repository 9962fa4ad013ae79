import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { rolldown } from 'rolldown';

/** The script of a page, in one file. */
export async function bundle(input: string): Promise<string> {
  const define = { 'process.env.NODE_ENV': '"production"' };
  const built = await rolldown({ input, platform: 'browser', transform: { define }, logLevel: 'silent' });
  const { output } = await built.generate({ format: 'esm', codeSplitting: false });
  await built.close();
  return output[0].code;
}

/** Serves a script at an origin of its own, with the page that loads it as `main.bundle.js`. */
export async function serveScript(script: string, page = EMPTY_PAGE) {
  const server = createServer(({ url = '' }, response) => {
    const isScript = url === '/main.bundle.js';
    response.setHeader('content-type', isScript ? 'text/javascript' : 'text/html; charset=utf-8');
    response.end(isScript ? script : page);
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}

const EMPTY_PAGE = '<!doctype html><title>Page</title><script type="module" src="main.bundle.js"></script>';
