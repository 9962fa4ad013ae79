import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { serve } from './serve.ts';

/**
 * Webhook receivers, each on a port of its own, that answer 200 at once and count. Ready with their
 * `urls`; asked anything, they answer how many requests came since they were asked last.
 */
serve(async ({ count }: { count: number }) => {
  let received = 0;
  const listener = (server: Server) =>
    new Promise<string>((resolve) => {
      server.listen(0, '127.0.0.1', BACKLOG, () => {
        const address = server.address() as AddressInfo;
        resolve(`http://127.0.0.1:${address.port}/`);
      });
    });
  const server = () =>
    createServer((request, response) => {
      received += 1;
      request.resume();
      request.on('end', () => response.writeHead(200, { 'content-length': 0 }).end());
    });
  const urls = await Promise.all(Array.from({ length: count }, () => listener(server())));
  return {
    ready: { urls },
    answer: async () => {
      const answer = { received };
      received = 0;
      return answer;
    },
  };
});

const BACKLOG = 511;
