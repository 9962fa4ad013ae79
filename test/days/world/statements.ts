import { messages, type PGlite, protocol, types } from '@electric-sql/pglite';

/**
 * Runs statements as `query` of PGlite does, with plans that are kept: that takes a tenth of the time. The first run of
 * a statement is left to PGlite: many come only once.
 */
export function createStatements(pglite: PGlite): RunStatement {
  const seen = new Map<string, Statement | 'once'>();
  let prepared = 0;

  async function prepare(sql: string): Promise<Statement> {
    prepared += 1;
    const name = `world_${prepared}`;
    const answer = await exchange([
      serialize.parse({ name, text: sql }),
      serialize.describe({ type: 'S', name }),
    ]);
    const described = answer.find((message) => message instanceof messages.ParameterDescriptionMessage);
    const row = answer.find((message) => message instanceof messages.RowDescriptionMessage);
    const statement = { name, parameters: described?.dataTypeIDs ?? [], columns: row?.fields ?? [] };
    seen.set(sql, statement);
    return statement;
  }

  function exchange(parts: Uint8Array[]) {
    return pglite.execProtocolStream(Buffer.concat([...parts, serialize.sync()]));
  }

  async function run(known: Statement | undefined, sql: string, params: unknown[]): Promise<Result> {
    const { name, parameters, columns } = known ?? (await prepare(sql));
    const values = params.map((value, index) => {
      if (value === null || value === undefined) return null;
      const write = pglite.serializers[parameters[index] ?? 0];
      if (write !== undefined) return write(value);
      // As PGlite's own `query` does.
      return (value as { toString(): string }).toString();
    });
    const answer = await exchange([serialize.bind({ statement: name, values }), serialize.execute()]);
    const rows: Record<string, unknown>[] = [];
    let affectedRows = 0;
    for (const message of answer) {
      if (message instanceof messages.DataRowMessage) {
        const cells = message.fields.map((text, index) => {
          const { name: column = '', dataTypeID = 0 } = columns[index] ?? {};
          return [column, types.parseType(text ?? null, dataTypeID, pglite.parsers)];
        });
        rows.push(Object.fromEntries(cells));
      } else if (message instanceof messages.CommandCompleteMessage) {
        const [command = '', ...counts] = message.text.split(' ');
        if (['INSERT', 'UPDATE', 'DELETE', 'MERGE'].includes(command)) affectedRows += Number(counts.at(-1));
      }
    }
    return { rows, affectedRows };
  }

  return (sql, params, turn, otherwise) => {
    const known = seen.get(sql);
    if (known === undefined) {
      seen.set(sql, 'once');
      return otherwise();
    }
    return turn(() => {
      const statement = seen.get(sql);
      return run(statement === 'once' ? undefined : statement, sql, params);
    });
  };
}

const { serialize } = protocol;

type Statement = { name: string; parameters: number[]; columns: { name: string; dataTypeID: number }[] };

type Result = { rows: Record<string, unknown>[]; affectedRows?: number };

/** `turn` gives the session to what it is passed; `otherwise` runs the statement without a kept plan. */
export type RunStatement = (
  sql: string,
  params: unknown[],
  turn: (work: () => Promise<Result>) => Promise<Result>,
  otherwise: () => Promise<Result>,
) => Promise<Result>;
