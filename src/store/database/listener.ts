import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '../../telemetry/log.ts';

/**
 * Listens on a connection of its own out of the pool, and takes another one when that is lost. Returns
 * what stops it, which waits for a connection attempt under way and does not fail.
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
  // A connection that is being closed can still receive what was sent before.
  const notify = () => {
    if (!stop.signal.aborted) handler();
  };
  const first = await connectListener(pool, channel, notify);

  const listening = (async () => {
    for (let current: Listening | undefined = first; current !== undefined; ) {
      await Promise.race([current.lost, aborted(stop.signal)]);
      current.client.release(true);
      if (stop.signal.aborted) return;
      log.warn({ channel }, 'Lost the connection that listens for notifications; reconnecting.');
      current = await reconnect(pool, channel, notify, stop.signal);
      notify();
    }
  })();

  return async () => {
    stop.abort();
    await listening;
  };
}

/** Between two attempts to reconnect. */
const RECONNECT_MS = 500;

async function connectListener(pool: Pool, channel: string, handler: () => void): Promise<Listening> {
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

/** Tries until it succeeds; undefined once `signal` is aborted. */
async function reconnect(
  pool: Pool,
  channel: string,
  handler: () => void,
  signal: AbortSignal,
): Promise<Listening | undefined> {
  while (!signal.aborted) {
    try {
      return await connectListener(pool, channel, handler);
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
