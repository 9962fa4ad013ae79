import { parseArgs } from 'node:util';
import { ConfigError } from '../../config.ts';
import { type Admin, AdminError } from '../../services/admin/admin.ts';
import { DatabaseUnavailable, StartError } from '../../store/database/faults.ts';
import { RefusedError, UsageError } from '../errors.ts';
import { openAdmin } from './open.ts';

/**
 * Runs a command of whoever holds the machine; `args` is what was typed after `admin`.
 *
 * Throws a `UsageError` for what makes no sense, and a `RefusedError` for what can't be done.
 */
export async function runAdminCommand(args: string[], terminal: Terminal): Promise<void> {
  const command = readCommand(args, terminal);
  try {
    await using opened = await openAdmin(terminal);
    await command(opened.admin);
  } catch (error) {
    if (explained.some((kind) => error instanceof kind)) {
      throw new RefusedError(error instanceof Error ? error.message : '', { cause: error });
    }
    throw error;
  }
}

/** Errors whose message is for the person who typed. */
const explained = [AdminError, ConfigError, StartError, DatabaseUnavailable];

/** Everything that was typed is checked before a database is opened. */
function readCommand(args: string[], terminal: Terminal): (admin: Admin) => Promise<void> {
  const { values, positionals } = parse(args);
  const [name, id] = [positionals.slice(0, 2).join(' '), positionals[2]];
  const expect = (count: number, ...allowed: (keyof typeof values)[]) => {
    if (positionals.length > count) throw new UsageError(`Unknown argument: ${positionals[count]}`);
    for (const option of optionNames) {
      if (values[option] !== undefined && !allowed.includes(option)) {
        throw new UsageError(`admin ${name} takes no --${option}`);
      }
    }
  };
  switch (name) {
    case 'keys create': {
      expect(2, 'name', 'scopes', 'project', 'expires-in');
      const request = {
        name: values.name ?? 'admin',
        scopes: (values.scopes ?? '*').split(',').map((scope) => scope.trim()),
        project: values.project ?? 'default',
        expiresIn: secondsIn(values['expires-in']),
      };
      return (admin) => createKey(admin, request, terminal);
    }
    case 'keys list':
      expect(2, 'project');
      return (admin) => listKeys(admin, values.project, terminal);
    case 'keys revoke':
      expect(3);
      if (id === undefined) throw new UsageError('Which key? Its id is in: admin keys list');
      return async (admin) => {
        const key = await admin.revokeKey({ id });
        terminal.note(`Revoked ${key.id} (${key.name}) of the project ${key.project}.`);
      };
    case 'projects':
      expect(1);
      return (admin) => listProjects(admin, terminal);
    default:
      throw new UsageError(`Unknown command: admin ${positionals.join(' ')}`.trim());
  }
}

const optionNames = ['name', 'scopes', 'project', 'expires-in'] as const;

function parse(args: string[]) {
  try {
    return parseArgs({
      args,
      allowPositionals: true,
      options: {
        name: { type: 'string' },
        scopes: { type: 'string' },
        project: { type: 'string' },
        'expires-in': { type: 'string' },
      },
    });
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

function secondsIn(text: string | undefined): number | null {
  if (text === undefined) return null;
  if (!/^\d{1,12}$/.test(text)) throw new UsageError(`--expires-in: Expected whole seconds, not ${text}`);
  return Number(text);
}

/** The key alone goes to standard output, so that a script can take it. */
async function createKey(
  admin: Admin,
  request: Parameters<Admin['createKey']>[0],
  { print, note }: Terminal,
): Promise<void> {
  const { key, secret } = await admin.createKey(request);
  const end = key.expiresAt === null ? '' : `, until ${key.expiresAt}`;
  note(`Made ${key.id} in the project ${key.project}, with the scopes ${key.scopes.join()}${end}.`);
  note('Keep it: it is shown only now.');
  print(secret);
}

async function listKeys(admin: Admin, project: string | undefined, { print, now }: Terminal): Promise<void> {
  const keys = await allOf((cursor) => admin.listKeys({ project, cursor }));
  const rows = keys.map((key) => {
    const isOver = key.expiresAt !== null && Date.parse(key.expiresAt) <= now();
    const end = key.expiresAt === null ? 'never' : `${day(key.expiresAt)}${isOver ? ' (expired)' : ''}`;
    const { id, last4, scopes, createdAt, lastUsedAt, name } = key;
    const used = lastUsedAt === null ? 'never' : day(lastUsedAt);
    return [id, key.project, `…${last4}`, scopes.join(), day(createdAt), end, used, name];
  });
  printTable([['ID', 'PROJECT', 'KEY', 'SCOPES', 'CREATED', 'ENDS', 'LAST USED', 'NAME'], ...rows], print);
}

async function listProjects(admin: Admin, { print }: Terminal): Promise<void> {
  const projects = await allOf((cursor) => admin.listProjects({ cursor }));
  const rows = projects.map(({ id, name, createdAt, keys, forms }) => [
    id,
    day(createdAt),
    String(keys),
    String(forms),
    name,
  ]);
  printTable([['ID', 'CREATED', 'KEYS', 'FORMS', 'NAME'], ...rows], print);
}

async function allOf<Item>(list: (cursor?: string) => Promise<Page<Item>>): Promise<Item[]> {
  const items: Item[] = [];
  let cursor: string | undefined;
  do {
    const page = await list(cursor);
    items.push(...page.items);
    cursor = page.nextCursor ?? undefined;
  } while (cursor !== undefined);
  return items;
}

function printTable(rows: string[][], print: (line: string) => void): void {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  for (const row of rows) {
    print(
      row
        .map((cell, column) => printable(cell).padEnd(widths?.[column] ?? 0))
        .join('  ')
        .trimEnd(),
    );
  }
}

/** Names come from callers: none may move the cursor of a terminal. */
function printable(text: string): string {
  return text.replaceAll(/\p{C}/gu, '?');
}

function day(time: string): string {
  return time.slice(0, 'YYYY-MM-DD'.length);
}

type Page<Item> = { items: Item[]; nextCursor: string | null };

export type Terminal = {
  env: NodeJS.ProcessEnv;
  /** Milliseconds since 1970. */
  now: () => number;
  /** Writes a line of the result. */
  print: (line: string) => void;
  /** Writes a line beside it. */
  note: (line: string) => void;
};
