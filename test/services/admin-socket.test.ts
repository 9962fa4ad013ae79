import { once } from 'node:events';
import { statSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, it } from 'vitest';
import { connectAdminSocket, requestSnapshot, serveAdminSocket } from '../../src/services/admin/socket.ts';
import { startServices } from '../support/services.ts';
import { temporaryFolder } from '../support/spawn.ts';

const unknown = (operation: string) =>
  `The service that runs knows no ${operation}: it is of another version.`;

it('is its owner’s alone, and refuses what only another version means', async () => {
  await using services = await startServices('pglite');
  using folder = temporaryFolder();
  await using _socket = { [Symbol.asyncDispose]: await serveAdminSocket(contextOf(services), given(folder)) };
  const admin = await connectAdminSocket(folder.path);
  const path = '/headlessforms.internal.v1.AdminService/RevokeKey';

  expect(statSync(join(folder.path, 'admin.sock')).mode).toBe(0o140600);
  await expect(admin?.revokeKey({ keyId: 'key_1' })).rejects.toThrow('There is no key key_1.');
  expect(await post(folder.path, path, { keyId: 'key_1', ifUnused: true })).toMatchObject({ status: 400 });
  expect(await post(folder.path, '/createKey', {})).toEqual({
    status: 404,
    body: JSON.stringify({ error: unknown('createKey') }),
  });
});

it.each([
  { name: 'before it was an RPC', status: 400, content: { error: 'The service that runs knows no …' } },
  { name: 'without these RPCs', status: 404, content: undefined },
])('is told of another version by a service $name', async ({ status, content }) => {
  using folder = temporaryFolder();
  const server = createServer((_request, response) => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(content));
  });
  server.listen(join(folder.path, 'admin.sock'));
  await once(server, 'listening');
  await using _closed = {
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
    },
  };
  const admin = await connectAdminSocket(folder.path);

  await expect(admin?.createKey({ name: 'x' })).rejects.toThrow(unknown('createKey'));
  await expect(Promise.resolve(admin?.listProjects({})[Symbol.asyncIterator]().next())).rejects.toThrow(
    unknown('listProjects'),
  );
  await expect(requestSnapshot(folder.path, () => undefined)).rejects.toThrow(unknown('takeSnapshot'));
});

function contextOf({ database, auditWriter }: Awaited<ReturnType<typeof startServices>>) {
  return { database, auditWriter, user: 'tester', schedule: [0], now: Date.now, onChange: () => undefined };
}

function given({ path: dataDir }: { path: string }) {
  return { dataDir, log: console };
}

async function post(dataDir: string, path: string, content: object) {
  const call = request({ socketPath: join(dataDir, 'admin.sock'), path, method: 'POST' });
  call.setHeader('content-type', 'application/json').end(JSON.stringify(content));
  const [response] = await once(call, 'response');
  return { status: response.statusCode, body: await text(response) };
}
