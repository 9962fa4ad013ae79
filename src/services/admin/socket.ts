import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { Client } from 'undici';
import { ZodError, z } from 'zod';
import type { Database } from '../../store/database/database.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Admin, LocalAdmin } from './admin.ts';
import { AdminError } from './context.ts';
import {
  chainRequest,
  checkedChain,
  checkRequest,
  erasedProject,
  erasedValue,
  exportedRows,
  exportRequest,
  foundChain,
  keyPage,
  keyRequest,
  listRequest,
  madeKey,
  pageRequest,
  projectPage,
  projectRequest,
  refusal,
  revokeRequest,
  shownKey,
  valueRequest,
} from './messages.ts';
import {
  createSnapshotStream,
  type OpenedSnapshot,
  openSnapshot,
  snapshotFolder,
} from './snapshot-stream.ts';

/**
 * Answers admin commands on a Unix socket in `dataDir`, which only the user of this process may open: whoever has
 * the embedded database open is the only one who can change it. A socket that a killed process left is replaced,
 * so the lock on the folder must be held.
 *
 * A socket that can't be made is a warning: the commands then need the service stopped. Returns what closes it.
 */
export async function serveAdminSocket({
  dataDir,
  database,
  admin,
  now,
  log,
}: SocketOptions): Promise<() => Promise<void>> {
  // Windows has no such sockets in folders.
  if (process.platform === 'win32') return async () => undefined;
  const path = socketPath(dataDir);
  const sendSnapshot = createSnapshotStream({
    database,
    dataDir,
    now,
    log,
    onTaken: () => admin.noteBackup(),
  });
  const server = createServer((request, response) => {
    if (request.url === '/snapshot') return void sendSnapshot(response);
    answer(request, admin, log).then(
      ({ status, body }) => {
        response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
      },
      // Its body could not be read.
      () => response.destroy(),
    );
  });
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
 * @throws AdminError if another user's service has it open.
 */
export async function connectAdminSocket(dataDir: string): Promise<Admin | undefined> {
  const path = socketPath(dataDir);
  if (!(await isServed(path))) return undefined;
  const call = async <T>(operation: string, request: unknown, reply: z.ZodType<T>): Promise<T> => {
    const client = new Client('http://admin', { socketPath: path });
    try {
      const { statusCode, body } = await client.request({
        method: 'POST',
        path: `/${operation}`,
        body: JSON.stringify(request),
      });
      const content: unknown = await body.json();
      if (statusCode !== 200) throw new AdminError(refusal.parse(content).error);
      return reply.parse(content);
    } finally {
      await client.close();
    }
  };
  return {
    createKey: (request) => call('createKey', request, madeKey),
    listKeys: (request) => call('listKeys', request, keyPage),
    revokeKey: (request) => call('revokeKey', request, shownKey),
    eraseProject: (request) => call('eraseProject', request, erasedProject),
    eraseValue: (request) => call('eraseValue', request, erasedValue),
    noteExport: (request) => call('noteExport', request, z.object({})),
    exportRows: (request) => call('exportRows', request, exportedRows),
    nextAuditChain: (request) => call('nextAuditChain', request, foundChain),
    checkAudit: (request) => call('checkAudit', request, checkedChain),
    listProjects: (request) => call('listProjects', request, projectPage),
  };
}

/**
 * A snapshot of the service that runs on the embedded database in `dataDir`; undefined if none does.
 *
 * @throws AdminError if it can't be had.
 */
export async function requestSnapshot(
  dataDir: string,
  onBytes: (bytes: number) => void,
): Promise<OpenedSnapshot | undefined> {
  const path = socketPath(dataDir);
  return (await isServed(path)) ? openSnapshot({ socketPath: path, dataDir, onBytes }) : undefined;
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
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (typeof code === 'string' && withoutServer.has(code)) return false;
    if (code === 'EACCES')
      throw new AdminError(`${path} belongs to another user: run the command as that one.`);
    throw error;
  } finally {
    socket?.destroy();
  }
}

const withoutServer = new Set(['ENOENT', 'ECONNREFUSED', 'EINVAL', 'ENAMETOOLONG']);

async function answer(request: IncomingMessage, admin: Admin, log: Log): Promise<Answer> {
  const operation = request.url?.slice(1) ?? '';
  const text = await readText(request);
  try {
    const body = await perform(admin, operation, text);
    if (!quiet.has(operation) && !operation.startsWith('list'))
      log.info({ operation }, 'An admin command was carried out.');
    return { status: 200, body };
  } catch (error) {
    if (error instanceof AdminError || error instanceof ZodError || error instanceof SyntaxError) {
      return { status: 400, body: { error: error.message } };
    }
    log.error({ err: error, operation }, 'An admin command failed.');
    return { status: 500, body: { error: 'The service could not do that; its log says why.' } };
  }
}

function perform(admin: Admin, operation: string, text: string): Promise<object> {
  const request: unknown = JSON.parse(text);
  switch (operation) {
    case 'createKey':
      return admin.createKey(keyRequest.parse(request));
    case 'listKeys':
      return admin.listKeys(listRequest.parse(request));
    case 'revokeKey':
      return admin.revokeKey(revokeRequest.parse(request));
    case 'eraseProject':
      return admin.eraseProject(projectRequest.parse(request));
    case 'eraseValue':
      return admin.eraseValue(valueRequest.parse(request));
    case 'noteExport':
      return admin.noteExport(projectRequest.parse(request));
    case 'exportRows':
      return admin.exportRows(exportRequest.parse(request));
    case 'nextAuditChain':
      return admin.nextAuditChain(chainRequest.parse(request));
    case 'checkAudit':
      return admin.checkAudit(checkRequest.parse(request));
    case 'listProjects':
      return admin.listProjects(pageRequest.parse(request));
    default:
      throw new AdminError(`The service that runs knows no ${operation}: it is of another version.`);
  }
}

async function readText(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of request.setEncoding('utf8')) text += chunk;
  return text;
}

/** Steps of commands, of which there are many. */
const quiet = new Set(['exportRows', 'checkAudit', 'nextAuditChain']);

type Answer = { status: number; body: object };

export type SocketOptions = {
  dataDir: string;
  database: Database;
  admin: LocalAdmin;
  now: () => number;
  log: Log;
};
