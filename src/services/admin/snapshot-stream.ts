import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { Client } from 'undici';
import { z } from 'zod';
import type { Database } from '../../store/database/database.ts';
import type { Log } from '../../telemetry/log.ts';
import { AdminError } from './context.ts';
import { type SnapshotFacts, takeSnapshot } from './snapshot.ts';

/**
 * Makes what answers a request for a snapshot with lines of JSON: how much is copied so far, and in the last line
 * how long writes waited. The snapshot is kept until the caller closes the connection; there is one at a time.
 */
export function createSnapshotStream({ onTaken, ...options }: SnapshotStreamOptions) {
  const { database, dataDir, now, log } = options;
  const folder = snapshotFolder(dataDir);
  let isTaken = false;
  return async (response: ServerResponse): Promise<void> => {
    if (isTaken) {
      response.writeHead(400).end(line({ error: 'Another backup is under way.' }));
      return;
    }
    isTaken = true;
    const closed = once(response, 'close');
    let bytes = 0;
    response.writeHead(200, { 'content-type': 'application/x-ndjson' });
    const progress = setInterval(() => response.write(line({ bytes })), PROGRESS_MS);
    try {
      const onBytes = (more: number) => {
        bytes += more;
      };
      const facts = await takeSnapshot({ database, dataDir, folder, now, onBytes });
      clearInterval(progress);
      onTaken();
      log.info({ ...facts, bytes }, 'Copied the database for a backup.');
      if (!response.destroyed) response.write(line(facts));
      await closed;
    } catch (error) {
      const known = error instanceof AdminError;
      if (!known) log.error({ err: error }, 'The database could not be copied for a backup.');
      response.end(
        line({ error: known ? error.message : 'The service could not copy the database; its log says why.' }),
      );
    } finally {
      clearInterval(progress);
      await rm(folder, { recursive: true, force: true });
      isTaken = false;
    }
  };
}

/**
 * Asks the service that listens on a socket for a snapshot, which lies in `folder` until the end of the scope.
 *
 * @throws AdminError if the service can't make one.
 */
export async function openSnapshot({ socketPath, dataDir, onBytes }: OpenOptions): Promise<OpenedSnapshot> {
  const client = new Client('http://admin', { socketPath, bodyTimeout: 0, headersTimeout: 0 });
  const close = () => client.destroy();
  try {
    const { body } = await client.request({ method: 'POST', path: '/snapshot' });
    // Closing the connection ends the snapshot, which is no error.
    body.on('error', () => undefined);
    const next = linesOf(body);
    for (let text = await next(); text !== undefined; text = await next()) {
      const message = messageLine.parse(JSON.parse(text));
      if ('error' in message) throw new AdminError(message.error);
      if ('waitedMs' in message) {
        return { ...message, folder: snapshotFolder(dataDir), [Symbol.asyncDispose]: close };
      }
      onBytes(message.bytes);
    }
    throw new AdminError('The service ended while it copied the database.');
  } catch (error) {
    await close();
    throw error;
  }
}

/** Reads a line at a time, and leaves the connection open: leaving a loop over the body would close it. */
function linesOf(body: AsyncIterable<Uint8Array>): () => Promise<string | undefined> {
  const chunks = body[Symbol.asyncIterator]();
  const decoder = new TextDecoder();
  let rest = '';
  return async () => {
    for (;;) {
      const end = rest.indexOf('\n');
      if (end >= 0) {
        const text = rest.slice(0, end);
        rest = rest.slice(end + 1);
        return text;
      }
      const { value, done } = await chunks.next();
      if (done === true) return undefined;
      rest += decoder.decode(value, { stream: true });
    }
  };
}

/** Where the service of a data folder puts its snapshot. */
export function snapshotFolder(dataDir: string): string {
  return join(dataDir, 'backup.partial');
}

function line(message: z.input<typeof messageLine>): string {
  return `${JSON.stringify(message)}\n`;
}

const messageLine = z.union([
  z.object({ error: z.string() }),
  z.object({ madeAt: z.string(), waitedMs: z.number() }),
  z.object({ bytes: z.number() }),
]);

const PROGRESS_MS = 1_000;

export type OpenedSnapshot = AsyncDisposable & SnapshotFacts & { folder: string };

export type SnapshotStreamOptions = {
  database: Database;
  dataDir: string;
  now: () => number;
  log: Log;
  /** Called when a snapshot is complete. */
  onTaken: () => void;
};

type OpenOptions = {
  socketPath: string;
  dataDir: string;
  /** Called each second with the bytes that are copied so far. */
  onBytes: (bytes: number) => void;
};
