import { type NewEntry, type Uncalled, uncalledEntry } from '../../domain/audit/entry.ts';
import type { Violation } from '../../domain/errors/violations.ts';
import type { AuditWriter } from '../../store/audit/audit-writer.ts';
import type { Database, Queries } from '../../store/database/database.ts';
import { findProjectNamed, type Project } from '../../store/projects/projects.ts';
import type { UploadStore } from '../uploads/upload-store.ts';

/** What is wrong with a request, for whoever typed it; one line for each problem. */
export class AdminError extends Error {
  override name = 'AdminError';
}

/** Throws an AdminError that names all problems of a request if it has any. */
export function refuseProblems(problems: readonly Violation[]): void {
  if (problems.length === 0) return;
  throw new AdminError(problems.map(({ path, message }) => `${path}: ${message}`).join('\n'));
}

/**
 * The project of this name.
 *
 * @throws AdminError if there is none.
 */
export async function existingProject(db: Queries, name: string): Promise<Project> {
  const project = await findProjectNamed(db, name);
  if (project === null) throw new AdminError(`There is no project named ${name}.`);
  return project;
}

/** An entry of the audit log that says what was done here now, and by whom. */
export function adminEntry({ user, now }: AdminContext, entry: Omit<Uncalled, 'actor' | 'at'>): NewEntry {
  return uncalledEntry({ ...entry, actor: `admin:${user}`, at: now() });
}

/** What the admin's operations work on. */
export type AdminContext = {
  database: Database;
  uploads: Pick<UploadStore, 'remove'>;
  auditWriter: AuditWriter;
  /** Who the audit log says it was. */
  user: string;
  /** Seconds before each attempt to tell webhooks of what is deleted. */
  schedule: readonly number[];
  now: () => number;
  /** Called after a change of the keys. */
  onChange: () => void;
};
