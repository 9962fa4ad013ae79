import { setTimeout as sleep } from 'node:timers/promises';
import { PostgresDialect, PostgresDriver } from 'kysely';
import { Client, type ClientConfig, Pool, type PoolClient, type PoolConfig, TypeOverrides } from 'pg';
import type { Log } from '../../telemetry/log.ts';
import { isConnectionFault, LIST_STATEMENT_MS } from './faults.ts';
import { type Row, timeTypes } from './queries.ts';
import { currentUse, type Holder, holderOf, isTimed } from './read-slots.ts';

/**
 * Makes the connections to a server that everything runs on: the ORM, Kysely, transactions and single
 * statements. Two rules hold for all of them:
 *
 * A connection that met a fault is closed rather than used again: it may lead to a server that is going
 * away, or to one that has become a standby.
 *
 * A commit whose wait for the synchronous standby is cancelled succeeds, with no more than a warning. What
 * is stored may yet be lost, so here it throws `CommitInDoubt`: its outcome is unknown.
 *
 * With `isPooled` they lead to a pooler in transaction mode, where nothing may outlast a transaction: statements have
 * no names, and settings are those of one transaction.
 */
export function createConnections(config: PoolConfig, { isPooled = false } = {}): Connections {
  const types = new TypeOverrides();
  for (const type of timeTypes) types.setTypeParser(type, (text) => text);
  const pool = new Pool({ ...config, types, Client: CheckedClient });
  // An 'error' event without a listener ends the process. Statements on a lost connection fail by themselves.
  pool.on('error', () => undefined);
  const holders = new Map<object, Holder>();
  pool.on('release', (_error, client) => holders.delete(client));
  const timed = new WeakSet<object>();

  async function connect(): Promise<PoolClient> {
    const client = await pool.connect();
    const use = currentUse();
    if (use !== undefined) holders.set(client, holderOf(use.reader));
    const hasLimit = isTimed(use);
    if (isPooled && hasLimit) await beginTimed(client);
    else if (timed.has(client) !== hasLimit) await setTimed(client, hasLimit);
    return client;
  }

  /** In a transaction of its own, which ends when the connection is released. */
  async function beginTimed(client: PoolClient): Promise<void> {
    try {
      await client.query(`begin read only; set local statement_timeout = ${LIST_STATEMENT_MS}`);
    } catch (error) {
      client.release(true);
      throw error;
    }
    const release = client.release.bind(client);
    client.release = (...given) => {
      const ended = given[0] ? undefined : client.query('commit');
      // What fails closes the connection.
      void Promise.resolve(ended).then(
        () => release(...given),
        () => release(true),
      );
    };
  }

  /** Most requests read as those before them do, so that few statements come here. */
  async function setTimed(client: PoolClient, hasLimit: boolean): Promise<void> {
    const limit = hasLimit ? LIST_STATEMENT_MS : (config.statement_timeout ?? 0);
    try {
      await client.query(`set statement_timeout = ${Number(limit)}`);
    } catch (error) {
      client.release(true);
      throw error;
    }
    if (hasLimit) timed.add(client);
    else timed.delete(client);
  }

  const counted = { pool: { options: pool.options, connect, end: () => pool.end() } };
  return {
    pool,
    dialect: Object.assign(new PostgresDialect(counted), { createDriver: () => new ServerDriver(counted) }),
    countUsedBy: (holder) => [...holders.values()].filter((each) => each === holder).length,
    async query(sql, params, prepared = false) {
      const client = await connect();
      try {
        const { rows } = await client.query<Row>({
          text: sql,
          values: params,
          ...(prepared && !isPooled && { name: nameOf(sql) }),
        });
        return rows;
      } finally {
        client.release();
      }
    },
    close: () => pool.end(),
  };
}

/** A connection. The pool drops it when it is released after it was ended. */
class CheckedClient extends Client {
  #inDoubt = false;

  constructor(config?: ClientConfig) {
    super(config);
    this.on('error', () => undefined);
    this.on('notice', ({ code }) => {
      this.#inDoubt ||= code === WARNING;
    });
  }

  /** Takes and returns what each of the overloads does that returns a promise: nobody here calls with a callback. */
  override query(...call: never[]): never {
    return this.#check(super.query(...(call as [never, never]))) as never;
  }

  async #check<Result>(running: Promise<Result>): Promise<Result> {
    try {
      const result = await running;
      if (this.#inDoubt) throw new CommitInDoubt();
      return result;
    } catch (error) {
      if (isConnectionFault(error)) void this.end();
      throw error;
    }
  }
}

class ServerDriver extends PostgresDriver {
  /**
   * A connection that could not roll back is closed, and the server rolls back. What is thrown is why: that a commit
   * is in doubt must not become that the connection, closed for it, takes no statement, after which one may try again.
   */
  override async rollbackTransaction(...call: Parameters<PostgresDriver['rollbackTransaction']>) {
    await super.rollbackTransaction(...call).catch(() => undefined);
  }

  /** `close` of the connections ends the pool. */
  override async destroy() {}
}

/** SQLSTATE. No other statement of this service causes a warning of this code. */
const WARNING = '01000';

class CommitInDoubt extends Error {
  /** SQLSTATE: transaction resolution unknown. */
  readonly code = '08007';
  constructor() {
    super('The commit was not confirmed by the synchronous standby');
  }
}

/** The name of a prepared statement: each text has its own. */
function nameOf(sql: string): string {
  const known = names.get(sql);
  if (known !== undefined) return known;
  const name = `statement_${names.size}`;
  names.set(sql, name);
  return name;
}

const names = new Map<string, string>();

export type Connections = {
  /** For what needs a connection of its own, such as the listener. */
  pool: Pool;
  /** How many statements and transactions of theirs use now. */
  countUsedBy: (holder: Holder) => number;
  /** What the ORM reaches the server by. */
  dialect: PostgresDialect;
  /** Runs one statement; `prepared` is as in `StatementOptions`. */
  query(sql: string, params: unknown[], prepared?: boolean): Promise<Row[]>;
  close(): Promise<void>;
};

/**
 * Listens on a connection of its own out of the pool, and takes another one when that is lost. Returns
 * what stops it, which waits for a connection attempt under way and does not fail.
 *
 * Notifications sent during the gap are lost, so the handler is called once after each reconnection.
 */
export async function listenForNotifications(
  pool: Pool,
  channel: string,
  handler: OnNotified,
  log: Log,
): Promise<() => Promise<void>> {
  const stop = new AbortController();
  // A connection that is being closed can still receive what was sent before.
  const notify = (text?: string) => {
    if (!stop.signal.aborted) handler(text);
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

async function connectListener(pool: Pool, channel: string, handler: OnNotified): Promise<Listening> {
  const client = await pool.connect();
  const { promise: lost, resolve } = Promise.withResolvers<void>();
  client.on('error', () => resolve());
  client.on('end', () => resolve());
  client.on('notification', (message) => {
    if (message.channel === channel) handler(message.payload);
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
  handler: OnNotified,
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

type OnNotified = (text?: string) => void;

type Listening = { client: PoolClient; lost: Promise<void> };
