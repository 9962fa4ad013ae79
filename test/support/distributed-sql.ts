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

function visit(node: unknown, at: Place, report: (fault: string) => void, catalog: Catalog): void {
  if (typeof node !== 'object' || node === null) return;
  if (Array.isArray(node)) {
    for (const each of node) visit(each, at, report, catalog);
    return;
  }
  for (const [kind, value] of Object.entries(node)) {
    if (kind === 'InsertStmt') {
      const fault = at.inCte ? columnFault(value, catalog) : undefined;
      if (fault !== undefined) report(fault);
      for (const name of functionsIn([
        value.onConflictClause?.targetList,
        value.onConflictClause?.whereClause,
        value.onConflictClause?.infer,
      ]))
        if (catalog.volatility(name) !== 'i') report(`${name} in ON CONFLICT`);
    }
    if (kind === 'InsertStmt' || kind === 'UpdateStmt' || kind === 'DeleteStmt') {
      for (const name of functionsIn(value.returningList ?? value.returningClause))
        if (catalog.volatility(name) !== 'i') report(`${name} in RETURNING`);
    }
    if (kind === 'UpdateStmt' || kind === 'DeleteStmt') {
      const { withClause, ...own } = value;
      for (const name of functionsIn(own)) if (catalog.volatility(name) === 'v') report(`${name} in ${kind}`);
    }
    visit(value, { inCte: at.inCte || kind === 'CommonTableExpr' }, report, catalog);
  }
}

/** What is wrong with the columns of an INSERT … SELECT, or of several rows of VALUES. */
function columnFault(insert: Json, { columnsOf }: Catalog): string | undefined {
  const query = insert.selectStmt?.SelectStmt;
  if (query === undefined || query.valuesLists?.length === 1) return undefined;
  const table: string = insert.relation.relname;
  const named: string[] = (insert.cols ?? []).map((column: Json) => column.ResTarget.name);
  const all = columnsOf(table);
  const wanted = all
    .filter(({ name, hasDefault }) => hasDefault || named.includes(name))
    .map(({ name }) => name);
  return wanted.join() === named.join()
    ? undefined
    : `insert into ${table} in a CTE: name (${wanted.join(', ')})`;
}

/** The functions that an expression calls. */
function functionsIn(node: Json): string[] {
  if (typeof node !== 'object' || node === null) return [];
  if (Array.isArray(node)) return node.flatMap(functionsIn);
  return Object.entries(node as Json).flatMap(([kind, value]) => {
    const inner = functionsIn(value);
    if (kind === 'FuncCall') return [String((value as Json).funcname.at(-1).String.sval), ...inner];
    if (kind === 'SQLValueFunction') return ['now', ...inner];
    if (kind === 'A_Expr' && hasInterval(value)) return ['timestamptz_pl_interval', ...inner];
    return inner;
  });
}

function hasInterval({ lexpr, rexpr }: Json): boolean {
  return [lexpr, rexpr].some(
    (side) =>
      side?.TypeCast?.typeName?.names?.at(-1)?.String?.sval === 'interval' ||
      side?.FuncCall?.funcname?.at(-1)?.String?.sval === 'make_interval' ||
      (side?.A_Expr !== undefined && side.A_Expr.name?.[0]?.String?.sval === '*' && hasInterval(side.A_Expr)),
  );
}

/** What the check has to know of the database. */
export type Catalog = {
  /** The columns of a table in its order. */
  columnsOf(table: string): { name: string; hasDefault: boolean }[];
  /** `i`mmutable, `s`table or `v`olatile: the worst of all functions with the name. */
  volatility(name: string): string;
};

type Place = { inCte: boolean };

// biome-ignore lint/suspicious/noExplicitAny: the tree of a parser, of which few fields are read.
type Json = any;
