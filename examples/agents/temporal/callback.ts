import { createServer, type IncomingMessage } from 'node:http';
import { json } from 'node:stream/consumers';
import { Client, Connection } from '@temporalio/client';
import { answered } from './workflow.ts';

// Takes the callbacks of sessions, at CALLBACKS, and signals their workflows. Check the signature as docs/webhooks.md
// says before you trust one. A callback may come twice: a signal that repeats changes nothing.
const client = new Client({ connection: await Connection.connect() });
createServer((request, response) => {
  signal(request).then(
    () => response.writeHead(204).end(),
    // The service tries again.
    () => response.writeHead(500).end(),
  );
}).listen(3000);

async function signal(request: IncomingMessage): Promise<void> {
  const { data } = (await json(request)) as { data: { outcome: string; answers?: { yes?: boolean } } };
  const workflow = client.workflow.getHandle(request.url?.slice(1) ?? '');
  await workflow.signal(answered, { outcome: data.outcome, yes: data.answers?.yes === true });
}
