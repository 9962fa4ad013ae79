import { loadModule, parseSync } from 'libpg-query';

/**
 * Finds in a statement, as PostgreSQL itself parses it, what Citus refuses or writes wrongly for the shard that it
 * sends it to (13.2, `multi_router_planner.c` and `ruleutils`):
 *
 * - INSERT … SELECT inside a CTE. Citus writes the columns in the order of the table, with those that have a default,
 *   and the query as it came. So the statement has to name them so itself.
 * - Functions in ON CONFLICT (`set` and `where`), and in RETURNING, that are not immutable.
 * - Volatile functions in UPDATE and DELETE.
 *
 * Operators count as immutable unless one side is an interval.
 */
export async function createStatementCheck(catalog: Catalog): Promise<(sql: string) => string[]> {
  await loadModule();
  return (sql) => {
    const found = new Set<string>();
    visit(parseSync(sql), { inCte: false }, (fault) => found.add(fault), catalog);
    return [...found];
  };
}

function visit(node: unknown, place: Place, report: (fault: string) => void, catalog: Catalog): void {
  for (const [kind, value] of entriesOf(node)) {
    if (kind === 'InsertStmt') {
      const fault = place.inCte ? columnFault(value, catalog) : undefined;
      if (fault !== undefined) report(fault);
      for (const name of functionsIn(at(value, 'onConflictClause')))
        if (catalog.volatility(name) !== 'i') report(`${name} in ON CONFLICT`);
    }
    if (changing.has(kind)) {
      for (const name of functionsIn(at(value, 'returningList') ?? at(value, 'returningClause')))
        if (catalog.volatility(name) !== 'i') report(`${name} in RETURNING`);
    }
    if (kind === 'UpdateStmt' || kind === 'DeleteStmt') {
      const own = entriesOf(value).filter(([part]) => part !== 'withClause');
      for (const name of functionsIn(own)) if (catalog.volatility(name) === 'v') report(`${name} in ${kind}`);
    }
    visit(value, { inCte: place.inCte || kind === 'CommonTableExpr' }, report, catalog);
  }
}

const changing = new Set(['InsertStmt', 'UpdateStmt', 'DeleteStmt']);

/** What is wrong with the columns of an INSERT … SELECT, or of several rows of VALUES. */
function columnFault(insert: unknown, catalog: Catalog): string | undefined {
  const query = at(insert, 'selectStmt', 'SelectStmt');
  if (query === undefined || entriesOf(at(query, 'valuesLists')).length === 1) return undefined;
  const table = String(at(insert, 'relation', 'relname'));
  const named = entriesOf(at(insert, 'cols')).map(([, column]) => String(at(column, 'ResTarget', 'name')));
  const wanted = catalog
    .columnsOf(table)
    .filter(({ name, hasDefault }) => hasDefault || named.includes(name))
    .map(({ name }) => name);
  return wanted.join() === named.join()
    ? undefined
    : `insert into ${table} in a CTE: name (${wanted.join(', ')})`;
}

/** The functions that an expression calls. */
function functionsIn(node: unknown): string[] {
  return entriesOf(node).flatMap(([kind, value]) => {
    const inner = functionsIn(value);
    if (kind === 'FuncCall') return [lastName(at(value, 'funcname')), ...inner];
    if (kind === 'SQLValueFunction') return ['now', ...inner];
    if (kind === 'A_Expr' && hasInterval(value)) return ['timestamptz_pl_interval', ...inner];
    return inner;
  });
}

function hasInterval(expression: unknown): boolean {
  return [at(expression, 'lexpr'), at(expression, 'rexpr')].some(
    (side) =>
      lastName(at(side, 'TypeCast', 'typeName', 'names')) === 'interval' ||
      lastName(at(side, 'FuncCall', 'funcname')) === 'make_interval' ||
      (lastName(at(side, 'A_Expr', 'name')) === '*' && hasInterval(at(side, 'A_Expr'))),
  );
}

/** The last part of a name that may be qualified. */
function lastName(parts: unknown): string {
  return String(at(entriesOf(parts).at(-1)?.[1], 'String', 'sval'));
}

function at(node: unknown, ...path: string[]): unknown {
  return path.reduce<unknown>((found, key) => entriesOf(found).find(([name]) => name === key)?.[1], node);
}

function entriesOf(node: unknown): [string, unknown][] {
  return typeof node === 'object' && node !== null ? Object.entries(node) : [];
}

/** What the check has to know of the database. */
export type Catalog = {
  /** The columns of a table in its order. */
  columnsOf: (table: string) => { name: string; hasDefault: boolean }[];
  /** `i`mmutable, `s`table or `v`olatile: the worst of all functions with the name. */
  volatility: (name: string) => string;
};

type Place = { inCte: boolean };
