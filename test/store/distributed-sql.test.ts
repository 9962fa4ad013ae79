import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadModule, parseSync } from 'libpg-query';
import { beforeAll, describe, expect, it } from 'vitest';
import { openDatabase } from '../../src/store/database/database.ts';
import { renewLeases } from '../../src/store/deliveries/claim.ts';
import { releaseAbandoned } from '../../src/store/deliveries/due.ts';
import { parkEvent } from '../../src/store/deliveries/enqueue-mails.ts';
import { resumeDeliveries } from '../../src/store/deliveries/postpone.ts';
import { replayDelivery } from '../../src/store/deliveries/replay.ts';
import { createNameNotes } from '../../src/store/forms/ignored-names.ts';
import { addRecipient } from '../../src/store/mail/mail-recipients.ts';
import { closeProject } from '../../src/store/projects/projects.ts';
import { removeDueFiles } from '../../src/store/removal/removals.ts';
import { findFormerSession, takeExpiredSessions } from '../../src/store/sessions/sessions.ts';
import { findOutcomes } from '../../src/store/submissions/explain-conflicts.ts';
import { findRepeatedSubmission } from '../../src/store/submissions/submissions.ts';
import { createServerDatabase } from '../support/database.ts';
import { fillTables } from '../support/filled-tables.ts';
import { runOn } from '../support/postgres.ts';
import { openRecordingProxy } from '../support/recording-proxy.ts';

/* docs/scaling.md says what Citus is for. It is no dependency of the tests: what it refuses is known. */

describe('what the service asks of its database', () => {
  let check: (sql: string) => string[];
  let statements: string[];

  beforeAll(async () => {
    await using database = await createServerDatabase();
    check = await createStatementCheck(await catalogOf(database.databaseUrl));
    statements = await recordStatements(database.databaseUrl);
  }, 180_000);

  it('has nothing that Citus refuses, or sends to a shard in other words', () => {
    const faults = new Map(statements.map((sql) => [sql, check(sql)]));

    expect([...faults].filter(([, found]) => found.length > 0)).toEqual([]);
  });

  it('was seen whole, but for deletions that call no function', () => {
    const seen = statements.map(normalized);

    const missing = changesInSource().filter((part) => !seen.some((sql) => sql.includes(part)));
    const isPlain = (part: string) => part.startsWith('delete') && !/(random|timestamp)\(|insert/.test(part);
    expect(
      missing.filter((part) => !isPlain(part) && !PLAIN.some((known) => part.startsWith(known))),
    ).toEqual([]);
  });

  it.each([
    ['with a as (insert into keys (b, a) select 1, 2) select 1', 'insert into keys in a CTE: name (a, b, c)'],
    ['insert into keys (b, a) select 1, 2', undefined],
    ['with k as (insert into keys (a, b, c) values (1, 2, 3)) select 1', undefined],
    [
      'insert into keys (a) values (1) on conflict (a) do update set a = 2 where keys.b <= now()',
      'now in ON CONFLICT',
    ],
    [
      "insert into keys (a) values (1) on conflict (a) do update set b = $1 - interval '1 day'",
      'timestamptz_pl_interval in ON CONFLICT',
    ],
    ['update keys set a = 1 returning b <= now()', 'now in RETURNING'],
    ['update keys set a = random()', 'random in UpdateStmt'],
    ['with r as (select random() as n) update keys set a = n from r', undefined],
  ])('is judged as Citus does: %s', async (sql, fault) => {
    const columns = ['a', 'b', 'c'].map((name) => ({ name, hasDefault: name === 'c' }));
    const volatility = (name: string) =>
      ({ now: 's', timestamptz_pl_interval: 's', random: 'v' })[name] ?? 'i';
    const judge = await createStatementCheck({ columnsOf: () => columns, volatility });

    expect(judge(sql)).toEqual(fault === undefined ? [] : [fault]);
  });
});

/** They stand by themselves, return nothing and have no condition on a conflict. */
const PLAIN = [
  'insert into delivery_queue (id, project_id, form_id, event_id, webhook_id, share, channel, kind, receiver, url, due_at',
  'insert into form_counters (form_id, slot) select unnest(',
  'update forms f set question_due_at = ends.due_at',
];

const normalized = (sql: string) => sql.replaceAll(/\s+/g, ' ').trim();

/** The beginnings of what changes rows, as the source has them up to the first part that is put in. */
function changesInSource(): string[] {
  const folder = join(import.meta.dirname, '../../src');
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  return files
    .filter((file) => file.endsWith('.ts') && !file.includes('migrations/'))
    .flatMap((file) => [
      ...readFileSync(join(folder, file), 'utf8').matchAll(
        /(?<=[`'\s(])(insert into \w+|update \w+( \w+)? set|delete from \w+)[^`'$]*/g,
      ),
    ])
    .map(([text]) => normalized(text));
}

async function recordStatements(databaseUrl: string): Promise<string[]> {
  await using opened = new AsyncDisposableStack();
  const proxy = opened.use(await openRecordingProxy(databaseUrl));
  await fillTables(opened, proxy.databaseUrl);
  await runRare(proxy.databaseUrl);
  return [...new Set(proxy.statements)];
}

/** Runs the statements that rows have to be in rare states for, on no rows, and takes back what they did. */
async function runRare(databaseUrl: string): Promise<void> {
  const database = await openDatabase({ databaseUrl, log: console });
  const [id, formId, projectId, email] = ['sub_none', 'form_none', 'prj_none', 'ada@example.com'];
  const missed = { id, formId, idempotencyKey: null, sessionId: null, respondentKey: null };
  const undo = new Error('Nothing is to stay');
  const work = database.transaction(async (tx) => {
    await parkEvent(tx, { id: 'dlv_none', eventId: 'evt_none', kind: 'owner' });
    await replayDelivery(tx, { projectId, id: 'dlv_none' });
    await releaseAbandoned(tx, 1);
    await renewLeases(tx, []);
    await addRecipient(tx, { formId, address: email, max: 3 });
    await closeProject(tx, projectId);
    await removeDueFiles(tx, async () => undefined, 1);
    await findFormerSession(tx, formId, 'none');
    await findRepeatedSubmission(tx, formId, 'none');
    await takeExpiredSessions(tx, 1);
    await findOutcomes(tx, [missed]);
    throw undo;
  });
  await expect(work).rejects.toBe(undo);
  await resumeDeliveries(database, 'wh_none');
  await createNameNotes(database)({ formId, names: ['none'], lastAt: '2026-11-28T00:00:00Z' });
  await database.close();
}

async function catalogOf(databaseUrl: string): Promise<Catalog> {
  const columns = await runOn(
    databaseUrl,
    `select attrelid::regclass::text as table, attname as name, atthasdef as default from pg_attribute
     where attrelid in (select oid from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace)
       and attnum > 0 and not attisdropped order by attrelid, attnum`,
  );
  const functions = await runOn(
    databaseUrl,
    `select proname as name, case when bool_or(provolatile = 'v') then 'v' when bool_or(provolatile = 's') then 's' else 'i' end as kind
     from pg_proc group by proname`,
  );
  const kinds = new Map(functions.map(({ name, kind }) => [name, String(kind)]));
  return {
    columnsOf: (table) =>
      columns
        .filter((column) => column.table === table)
        .map(({ name, default: hasDefault }) => ({ name: String(name), hasDefault: hasDefault === true })),
    volatility: (name) => kinds.get(name) ?? 'i',
  };
}

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
async function createStatementCheck(catalog: Catalog): Promise<(sql: string) => string[]> {
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
type Catalog = {
  /** The columns of a table in its order. */
  columnsOf: (table: string) => { name: string; hasDefault: boolean }[];
  /** `i`mmutable, `s`table or `v`olatile: the worst of all functions with the name. */
  volatility: (name: string) => string;
};

type Place = { inCte: boolean };
