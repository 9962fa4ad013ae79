import type { Admin } from '../../services/admin/admin.ts';
import type { Terminal } from './terminal.ts';

/** Makes a key. It alone goes to standard output, so that a script can take it. */
export async function createKey(
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

/** Lists the keys of a project, or of all, without their texts. */
export async function listKeys(
  admin: Admin,
  project: string | undefined,
  { print, now }: Terminal,
): Promise<void> {
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

/** Lists the projects with the numbers of their keys and forms. */
export async function listProjects(admin: Admin, { print }: Terminal): Promise<void> {
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
