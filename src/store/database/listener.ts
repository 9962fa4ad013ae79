import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '../../telemetry/log.ts';

/**
 * Listens on a connection of its own out of the pool, and takes another one when that is lost.
 *
 * Notifications sent during the gap are lost, so the handler is called once after each reconnection.
 */
export async function listenOn(
  pool: Pool,
  channel: string,
  handler: () => void,
  log: Log,
): Promise<() => Promise<void>> {
  const stop = new AbortController();
  // A connection that is being closed may still bring what was sent before it is.
  const tell = () => {
    if (!stop.signal.aborted) handler();
  };
  let current = await begin(pool, channel, tell);

  const kept = (async () => {
    while (!stop.signal.aborted) {
      await Promise.race([current.lost, aborted(stop.signal)]);
      if (stop.signal.aborted) break;
      log.warn({ channel }, 'Lost the connection that listens; taking another.');
      current.client.release(true);
      current = (await again(pool, channel, tell, stop.signal)) ?? current;
      tell();
    }
  })();

  return async () => {
    stop.abort();
    await kept;
    current.client.release(true);
  };
}

/** Between two tries to listen again. */
const RECONNECT_MS = 500;

async function begin(pool: Pool, channel: string, handler: () => void): Promise<Listening> {
  const client = await pool.connect();
  const { promise: lost, resolve } = Promise.withResolvers<void>();
  client.on('error', () => resolve());
  client.on('end', () => resolve());
  client.on('notification', (message) => {
    if (message.channel === channel) handler();
  });
  try {
    await client.query(`listen "${channel}"`);
  } catch (error) {
    client.release(true);
    throw error;
  }
  return { client, lost };
}

async function again(pool: Pool, channel: string, handler: () => void, signal: AbortSignal) {
  while (!signal.aborted) {
    try {
      return await begin(pool, channel, handler);
    } catch {
      await sleep(RECONNECT_MS, undefined, { signal }).catch(() => undefined);
    }
  }
  return undefined;
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  const { promise, resolve } = Promise.withResolvers<void>();
  signal.addEventListener('abort', () => resolve(), { once: true });
  return promise;
}

type Listening = { client: Client; lost: Promise<void> };

/** The part of node-pg's pool that is used. */
type Pool = { connect(): Promise<Client> };
type Client = {
  query(sql: string): Promise<unknown>;
  on(event: 'error' | 'end', handler: () => void): unknown;
  on(event: 'notification', handler: (message: { channel: string }) => void): unknown;
  release(destroy: boolean): void;
};
