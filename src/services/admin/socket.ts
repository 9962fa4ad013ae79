import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import {
  durationMs,
  MethodOptions_IdempotencyLevel as IdempotencyLevel,
  timestampDate,
} from '@bufbuild/protobuf/wkt';
import { createClient, type Interceptor } from '@connectrpc/connect';
import { connectNodeAdapter, createConnectTransport } from '@connectrpc/connect-node';
import { AdminService } from '../../../gen/headlessforms/internal/v1/admin_pb.js';
import { hasCode } from '../../domain/errors/system-errors.ts';
import type { Log } from '../../telemetry/log.ts';
import { type Admin, adminService, explain, refuse, unknownOperation } from './admin.ts';
import { type AdminContext, refusal } from './context.ts';
import { adminSnapshots, snapshotFolder } from './snapshot.ts';

/**
 * Answers admin commands on a Unix socket in `dataDir`, which only the user of this process may open: the process that has
 * the embedded database open is the only one who can change it. A socket that a killed process left is replaced,
 * so the lock on the folder must be held.
 *
 * A socket that can't be made is a warning: the commands then need the service stopped. Returns what closes it.
 */
export async function serveAdminSocket(
  context: AdminContext,
  { dataDir, log }: { dataDir: string; log: Log },
): Promise<() => Promise<void>> {
  // Windows has no such sockets in folders.
  if (process.platform === 'win32') return async () => undefined;
  const path = socketPath(dataDir);
  const implementation = { ...adminService(context, log), ...adminSnapshots(context, { dataDir, log }) };
  const server = createServer(
    connectNodeAdapter({
      routes: ({ service }) => service(AdminService, implementation),
      interceptors: [refuse(log), noteChange(log)],
      // A newer command may mean something else by a field that this version does not know.
      jsonOptions: { ignoreUnknownFields: false },
      // Older commands than this protocol read it so.
      fallback: ({ url = '' }, response) => {
        response.writeHead(404, { 'content-type': 'application/json' });
        response.end(JSON.stringify({ error: unknownOperation(url.slice(1)) }));
      },
    }),
  );
  try {
    rmSync(path, { force: true });
    // What a process has left that was killed during a backup.
    rmSync(snapshotFolder(dataDir), { recursive: true, force: true });
    listenForOwner(server, path);
    await once(server, 'listening');
  } catch (error) {
    log.warn({ err: error }, `Admin commands need this service stopped: ${path} could not be made a socket.`);
    return async () => undefined;
  }
  return async () => {
    const closed = once(server, 'close');
    server.close();
    server.closeAllConnections();
    await closed;
  };
}

/**
 * The admin of the service that runs on the embedded database in `dataDir`; undefined if none does.
 *
 * @throws ConnectError if another user's service has it open.
 */
export async function connectAdminSocket(dataDir: string): Promise<Admin | undefined> {
  const path = socketPath(dataDir);
  if (!(await isServed(path))) return undefined;
  const transport = createConnectTransport({
    baseUrl: 'http://admin',
    httpVersion: '1.1',
    nodeOptions: { socketPath: path },
    // Unknown fields are refused in JSON alone.
    useBinaryFormat: false,
    acceptCompression: [],
    interceptors: [explain],
  });
  return createClient(AdminService, transport);
}

/**
 * A snapshot of the service that runs on the embedded database in `dataDir`, which is in `folder` until the end of the
 * scope; undefined if none runs. `onBytes` is called each second with the bytes that are copied so far.
 *
 * @throws ConnectError if it can't be had.
 */
export async function requestSnapshot(
  dataDir: string,
  onBytes: (bytes: number) => void,
): Promise<OpenedSnapshot | undefined> {
  const admin = await connectAdminSocket(dataDir);
  if (admin === undefined) return undefined;
  const call = new AbortController();
  // Leaving a loop over the steps would end the call, and so the snapshot.
  const steps = admin.takeSnapshot({}, { signal: call.signal })[Symbol.asyncIterator]();
  for (;;) {
    const { value, done } = await steps.next();
    if (done === true) throw refusal('The service ended while it copied the database.');
    const { madeTime, waited, copiedBytes } = value;
    if (madeTime !== undefined) {
      return {
        folder: snapshotFolder(dataDir),
        madeAt: timestampDate(madeTime),
        waitedMs: waited === undefined ? 0 : durationMs(waited),
        [Symbol.dispose]: () => call.abort(),
      };
    }
    onBytes(Number(copiedBytes));
  }
}

/** Logs what changes something. */
function noteChange(log: Log): Interceptor {
  return (next) => (request) => {
    const { localName: operation, idempotency } = request.method;
    if (idempotency !== IdempotencyLevel.NO_SIDE_EFFECTS)
      log.info({ operation }, 'An admin command came in.');
    return next(request);
  };
}

/** The socket has the mode 0600 from its first moment on: it is made before `listen` returns. */
function listenForOwner(server: Server, path: string): void {
  const mask = process.umask(0o177);
  try {
    server.listen(path);
  } finally {
    process.umask(mask);
  }
}

function socketPath(dataDir: string): string {
  return join(dataDir, 'admin.sock');
}

async function isServed(path: string): Promise<boolean> {
  let socket: Socket | undefined;
  try {
    // Throws at once if the path is longer than a socket's may be.
    socket = connect(path);
    await once(socket, 'connect');
    return true;
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ECONNREFUSED', 'EINVAL', 'ENAMETOOLONG')) return false;
    if (hasCode(error, 'EACCES')) {
      throw refusal(`${path} belongs to another user: run the command as that one.`);
    }
    throw error;
  } finally {
    socket?.destroy();
  }
}

export type OpenedSnapshot = Disposable & { folder: string; madeAt: Date; waitedMs: number };
