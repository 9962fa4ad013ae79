import { createServer, type ServerResponse } from 'node:http';
import { serve } from '../support/serve.ts';
import { freePort } from '../support/service.ts';

/** What requests hold that wait for their answer when nothing but Node serves them: it never answers. */
serve(async () => {
  const port = await freePort();
  const waiting = new Set<ServerResponse>();
  const server = createServer({ noDelay: true }, (_request, response) => {
    waiting.add(response);
    response.on('close', () => waiting.delete(response));
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  return { ready: { port } };
});
