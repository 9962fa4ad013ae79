import { Code, ConnectError } from '@connectrpc/connect';
import { INSTALLATION, type NewEntry, systemEntry, type Uncalled } from '../../domain/audit.ts';
import type { Violation } from '../../domain/errors/violations.ts';
import type { AuditWriter } from '../../store/audit/audit-writer.ts';
import type { Database, Queries } from '../../store/database/database.ts';
import type { Page } from '../../store/database/queries.ts';
import { findProjectNamed, type Project } from '../../store/projects/projects.ts';

/** What is wrong with a request, for the person who typed it; one line for each problem. */
export function refusal(message: string): ConnectError {
  return new ConnectError(message, Code.FailedPrecondition);
}

/** Throws a refusal that names all problems of a request if it has any. */
export function refuseProblems(problems: readonly Violation[]): void {
  if (problems.length === 0) return;
  throw refusal(problems.map(({ path, message }) => `${path}: ${message}`).join('\n'));
}

/**
 * The project of this name.
 *
 * @throws ConnectError if there is none.
 */
export async function existingProject(db: Queries, name: string): Promise<Project> {
  const project = await findProjectNamed(db, name);
  if (project === null) throw refusal(`There is no project named ${name}.`);
  return project;
}

/** The items of all pages of a list, page by page. */
export async function* pagesOf<Item>(list: (cursor?: string) => Promise<Page<Item>>): AsyncGenerator<Item[]> {
  let cursor: string | undefined;
  do {
    const { items, nextCursor } = await list(cursor);
    yield items;
    cursor = nextCursor ?? undefined;
  } while (cursor !== undefined);
}

/** Records that everything was copied. */
export function noteBackup({ auditWriter, ...about }: AuditContext): void {
  auditWriter.note(adminEntry(about, { projectId: INSTALLATION, action: 'installation.backed_up' }));
}

/** An entry of the audit log that says what was done here now, and by whom. */
export function adminEntry(
  { user, now }: Omit<AuditContext, 'auditWriter'>,
  entry: Omit<Uncalled, 'actor' | 'at'>,
): NewEntry {
  return systemEntry({ ...entry, actor: `admin:${user}`, at: now() });
}

/** What the admin's operations work on. */
export type AdminContext = {
  database: Database;
  auditWriter: AuditWriter;
  /** Who the audit log says it was. */
  user: string;
  /** Seconds before each attempt to tell webhooks of what is deleted. */
  schedule: readonly number[];
  now: () => number;
  /** Called after a change of the keys. */
  onChange: () => void;
};

type AuditContext = Pick<AdminContext, 'auditWriter' | 'user' | 'now'>;
