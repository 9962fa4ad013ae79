import { userInfo } from 'node:os';
import { type AdminAudit, createAdminAudit } from './audit.ts';
import type { AdminContext } from './context.ts';
import { type AdminKeys, createAdminKeys } from './keys.ts';
import { type AdminProjects, createAdminProjects } from './projects.ts';

/**
 * What whoever holds the machine may do without a key, on an open database.
 *
 * Methods throw an `AdminError` that says what is wrong with a request.
 */
export function createAdmin(context: AdminContext): LocalAdmin {
  return { ...createAdminKeys(context), ...createAdminProjects(context), ...createAdminAudit(context) };
}

/** Who runs this process, by name if the system knows one. */
export function systemUser(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? 'unknown');
  }
}

/** The admin's operations, on a database or through the socket of the process that has it open. */
export type Admin = AdminKeys & AdminProjects & Omit<AdminAudit, 'noteBackup'>;

/** The admin of the process that has the database open. */
export type LocalAdmin = AdminKeys & AdminProjects & AdminAudit;
