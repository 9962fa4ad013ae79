import {
  CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type QueryResult,
} from 'kysely';
import { Pool, type PoolClient, type PoolConfig, type QueryConfig, TypeOverrides } from 'pg';
import { timeTypes } from './engine.ts';
import { isConnectionFault } from './faults.ts';
import type { Row } from './queries.ts';

/**
 * Makes the connections to a server that everything runs on: the ORM, Kysely, transactions and single
 * statements. Two rules hold for all of them:
 *
 * A connection that met a fault is closed rather than used again: it may lead to a server that is going
 * away, or to one that has become a standby.
 *
 * A commit whose wait for the synchronous standby is cancelled succeeds, with no more than a warning. What
 * is stored may yet be lost, so here it throws `CommitInDoubt`: its outcome is unknown.
 */
export function createConnections(config: PoolConfig): Connections {
  const types = new TypeOverrides();
  for (const type of timeTypes) types.setTypeParser(type, (text) => text);
  const pool = new Pool({ ...config, types });
  // An 'error' event without a listener ends the process. Statements on a lost connection fail by themselves.
  pool.on('error', () => undefined);
  pool.on('connect', (client) => client.on('error', () => undefined));

  // One object for each connection: one for each statement made small SELECTs through the ORM cost a quarter more.
  const known = new WeakMap<PoolClient, Connection>();
  const acquire = async () => {
    const client = await pool.connect();
    const connection = known.get(client) ?? new Connection(client);
    known.set(client, connection);
    return connection;
  };

  return {
    pool,
    dialect: {
      createDriver: () => createDriver(acquire),
      createAdapter: () => new PostgresAdapter(),
      createQueryCompiler: () => new PostgresQueryCompiler(),
      createIntrospector: (db) => new PostgresIntrospector(db),
    },
    async query(sql, params, prepared = false) {
      const connection = await acquire();
      try {
        return await connection.query({ text: sql, values: params, ...(prepared && { name: nameOf(sql) }) });
      } finally {
        connection.release();
      }
    },
    close: () => pool.end(),
  };
}

/** What Kysely runs statements and transactions with. */
function createDriver(acquire: () => Promise<Connection>): Driver {
  const run = async (connection: DatabaseConnection, sql: string) => {
    await connection.executeQuery(CompiledQuery.raw(sql));
  };
  return {
    init: async () => undefined,
    acquireConnection: acquire,
    beginTransaction: (connection, { isolationLevel, accessMode }) =>
      run(
        connection,
        `begin ${isolationLevel === undefined ? '' : `isolation level ${isolationLevel}`} ${accessMode ?? ''}`,
      ),
    commitTransaction: (connection) => run(connection, 'commit'),
    async rollbackTransaction(connection) {
      // The server rolls back when the connection is closed, and a lost one would not answer.
      if (connection instanceof Connection && connection.isFaulty) return;
      await run(connection, 'rollback');
    },
    savepoint: (connection, name) => run(connection, `savepoint "${name}"`),
    rollbackToSavepoint: (connection, name) => run(connection, `rollback to savepoint "${name}"`),
    releaseSavepoint: (connection, name) => run(connection, `release savepoint "${name}"`),
    async releaseConnection(connection) {
      if (connection instanceof Connection) connection.release();
    },
    // Only what has been used is destroyed: `close` of the connections ends the pool.
    destroy: async () => undefined,
  };
}

/** A connection of the pool. One that is faulty is closed when it is released. */
class Connection implements DatabaseConnection {
  readonly #client: PoolClient;
  #inDoubt = false;
  isFaulty = false;

  constructor(client: PoolClient) {
    this.#client = client;
    client.on('notice', ({ code }) => {
      this.#inDoubt ||= code === WARNING;
    });
  }

  async query(query: QueryConfig): Promise<Row[]> {
    return (await this.#run(query)).rows;
  }

  async executeQuery<R>({ sql, parameters }: CompiledQuery): Promise<QueryResult<R>> {
    const { rows, rowCount, command } = await this.#run({ text: sql, values: [...parameters] });
    return { rows, ...(changing.has(command) && { numAffectedRows: BigInt(rowCount ?? 0) }) };
  }

  /** Long lists are read in pages. */
  streamQuery(): never {
    throw new Error('Not supported');
  }

  release(): void {
    this.#client.release(this.isFaulty);
  }

  async #run(query: QueryConfig) {
    try {
      const result = await this.#client.query(query);
      if (this.#inDoubt) throw new CommitInDoubt();
      return result;
    } catch (error) {
      this.isFaulty ||= isConnectionFault(error);
      throw error;
    }
  }
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

/** The commands whose row count is that of changed rows. */
const changing = new Set(['INSERT', 'UPDATE', 'DELETE', 'MERGE']);

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
  /** What the ORM reaches the server by. */
  dialect: Dialect;
  /** Runs one statement; `prepared` is as in `StatementOptions`. */
  query(sql: string, params: unknown[], prepared?: boolean): Promise<Row[]>;
  close(): Promise<void>;
};
