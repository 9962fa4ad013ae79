import { userInfo } from 'node:os';
import { create } from '@bufbuild/protobuf';
import { DurationSchema } from '@bufbuild/protobuf/wkt';
import type { z } from 'zod';
import { INSTALLATION, uncalledEntry } from '../../domain/audit/entry.ts';
import { demoFormId } from '../../domain/ids.ts';
import { pageSizes } from '../../domain/limits.ts';
import { DEFAULT_PROJECT } from '../../rpc/context.ts';
import { findNextChain } from '../../store/audit/audit-log.ts';
import type { AuditWriter } from '../../store/audit/audit-writer.ts';
import type { Database, Transaction } from '../../store/database/database.ts';
import { removeRowsOfForm } from '../../store/forms/form-removal.ts';
import { deleteKey, findKeyOfAny, insertKey, type Key, listKeys, listKeysOfAll } from '../../store/keys.ts';
import { exportRows } from '../../store/projects/project-export.ts';
import {
  closeProject,
  countSubmissionsOfProject,
  removeRowsOfProject,
} from '../../store/projects/project-removal.ts';
import { findProject, findProjectNamed, listProjects, projectNames } from '../../store/projects/projects.ts';
import { listFormIds } from '../../store/submissions/erasure.ts';
import { projectNamed } from '../keys/key-reader.ts';
import { newKey, newKeyProblems } from '../keys/keys.ts';
import { eraseByValue, erasureProblems, placeOf, tokenOf } from '../submissions/erasure.ts';
import type { UploadStore } from '../uploads/upload-store.ts';
import { checkChain } from './audit-check.ts';
import type {
  chainRequest,
  checkedChain,
  checkRequest,
  erasedProject,
  erasedValue,
  exportedRows,
  exportRequest,
  foundChain,
  keyPage,
  keyRequest,
  listRequest,
  madeKey,
  projectPage,
  shownKey,
  valueRequest,
} from './messages.ts';

/**
 * What whoever holds the machine may do without a key, on an open database: make, list and revoke keys of all
 * projects. `onChange` is called after a change of the keys.
 *
 * Methods throw an `AdminError` that says what is wrong with a request.
 */
export function createAdmin(options: AdminOptions): LocalAdmin {
  const { database, auditWriter, user, now, onChange } = options;
  const actor = `admin:${user}`;
  return {
    async createKey({ name, scopes, project: projectName, expiresIn }) {
      const seconds = expiresIn === null ? undefined : create(DurationSchema, { seconds: BigInt(expiresIn) });
      const wanted = { name, scopes, project: projectName, expiresIn: seconds };
      const problems = newKeyProblems(wanted, { project: DEFAULT_PROJECT, scopes: ['*'] });
      if (problems.length > 0) {
        throw new AdminError(problems.map(({ path, message }) => `${path}: ${message}`).join('\n'));
      }
      const project = await projectNamed(database, projectName, now());
      const lifeMs = expiresIn === null ? undefined : expiresIn * 1000;
      const { key, secret } = newKey({ project, name, scopes, expiresIn: lifeMs }, now());
      await database.transaction(async (tx) => {
        await insertKey(tx, key);
        const about = { projectId: project.id, resource: key.id, detail: scopes.join(',') };
        await auditWriter.store(tx, uncalledEntry({ actor, at: now(), action: 'key.created', ...about }));
      });
      onChange();
      return { key: shown(key, projectName), secret };
    },

    async listKeys({ project: name, cursor }) {
      const request = { limit: pageSizes.max, cursor };
      if (name === undefined) {
        const { items, nextCursor } = await listKeysOfAll(database, request);
        const names = await projectNames(database, [...new Set(items.map(({ projectId }) => projectId))]);
        return {
          items: items.map((key) => shown(key, names.get(key.projectId) ?? key.projectId)),
          nextCursor,
        };
      }
      const project = await findProjectNamed(database, name);
      if (project === null) throw new AdminError(`There is no project named ${name}.`);
      const { items, nextCursor } = await listKeys(database, project.id, request);
      return { items: items.map((key) => shown(key, name)), nextCursor };
    },

    async revokeKey({ id }) {
      const key = await findKeyOfAny(database, id);
      if (key === null) throw new AdminError(`There is no key ${id}.`);
      await database.transaction(async (tx) => {
        if (!(await deleteKey(tx, key.projectId, id))) throw new AdminError(`There is no key ${id}.`);
        const about = { projectId: key.projectId, resource: id };
        await auditWriter.store(tx, uncalledEntry({ actor, at: now(), action: 'key.revoked', ...about }));
      });
      onChange();
      const names = await projectNames(database, [key.projectId]);
      return shown(key, names.get(key.projectId) ?? key.projectId);
    },

    async eraseProject({ project: name }) {
      const project = await findProjectNamed(database, name);
      if (project === null) throw new AdminError(`There is no project named ${name}.`);
      await database.transaction(async (tx) => {
        const closed = await closeProject(tx, project.id);
        // The calls that go on have nothing left to close.
        if (closed.keys + closed.forms > 0) {
          const about = { projectId: project.id, resource: project.id, count: closed.forms };
          await auditWriter.store(
            tx,
            uncalledEntry({ actor, at: now(), action: 'project.erased', ...about }),
          );
        }
      });
      onChange();
      return removeProjectRows(options, project.id);
    },

    async eraseValue({ project: name, value, place }) {
      const project = await findProjectNamed(database, name);
      if (project === null) throw new AdminError(`There is no project named ${name}.`);
      const problems = erasureProblems(value);
      if (problems.length > 0)
        throw new AdminError(problems.map(({ path, message }) => `${path}: ${message}`).join('\n'));
      const record = (tx: Transaction, about: { formId?: string; count: number; detail: string }) =>
        auditWriter.store(
          tx,
          uncalledEntry({ projectId: project.id, actor, at: now(), action: 'submission.erased', ...about }),
        );
      const begin = place === null ? undefined : placeOf(place);
      const erasure = { projectId: project.id, value, formId: '', place: begin };
      const erased = await eraseByValue({ ...options, onErased: onChange, record }, erasure);
      return { ...erased, next: erased.next === undefined ? null : tokenOf(erased.next) };
    },

    async noteExport({ project: name }) {
      const project = await findProjectNamed(database, name);
      if (project === null) throw new AdminError(`There is no project named ${name}.`);
      const about = { projectId: project.id, resource: project.id };
      await database.transaction((tx) =>
        auditWriter.store(tx, uncalledEntry({ actor, at: now(), action: 'project.exported', ...about })),
      );
      return {};
    },

    async exportRows({ project: name, name: kind, after, lines }) {
      const project = await findProjectNamed(database, name);
      if (project === null) throw new AdminError(`There is no project named ${name}.`);
      return exportRows(database, kind, { projectId: project.id, after, lines });
    },

    noteBackup() {
      auditWriter.note(
        uncalledEntry({ projectId: INSTALLATION, actor, at: now(), action: 'installation.backed_up' }),
      );
    },

    async nextAuditChain({ after }) {
      const projectId = await findNextChain(database, after);
      const project = projectId === null ? null : await findProject(database, projectId);
      return { projectId, name: project?.name ?? null };
    },

    async checkAudit({ projectId, after }) {
      return checkChain(database, projectId, after ?? undefined);
    },

    async listProjects({ cursor }) {
      const { items, nextCursor } = await listProjects(database, { limit: pageSizes.max, cursor });
      return {
        items: items.map(({ createdAt, ...project }) => ({ ...project, createdAt: createdAt.toISOString() })),
        nextCursor,
      };
    },
  };
}

/** Goes on for `TURN_MS`. What belongs to forms goes first, so that what tells of them is looked through once. */
async function removeProjectRows(
  { database, now, uploads, schedule }: AdminOptions,
  projectId: string,
): Promise<{ removed: number; more: boolean }> {
  const announcement = { at: now(), schedule };
  const until = performance.now() + TURN_MS;
  const before = await countSubmissionsOfProject(database, projectId);
  let more = true;
  while (more && performance.now() < until) {
    more = false;
    for (let after = ''; ; ) {
      const [formId] = await listFormIds(database, projectId, { after, limit: 1 });
      if (formId === undefined) break;
      after = formId;
      if (formId === demoFormId) continue;
      const rows = await removeRowsOfForm(database, { formId, limit: GROUP }, announcement);
      for (const id of rows.uploadIds) await uploads.remove(id);
      more ||= rows.more;
    }
    if (!more) more = await removeRowsOfProject(database, projectId, GROUP);
  }
  return { removed: before - (await countSubmissionsOfProject(database, projectId)), more };
}

/** A caller of the socket waits: it shows how far the removal has come between calls. */
const TURN_MS = 1_000;

/** Rows of one statement: some milliseconds. */
const GROUP = 100;

/** Who runs this process, by name if the system knows one. */
export function systemUser(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? 'unknown');
  }
}

/** What is wrong with a request, for whoever typed it; one line for each problem. */
export class AdminError extends Error {
  override name = 'AdminError';
}

function shown(key: Key, project: string): z.output<typeof shownKey> {
  const { id, name, scopes, last4, createdAt, expiresAt, lastUsedAt } = key;
  return {
    id,
    name,
    project,
    scopes,
    last4,
    createdAt: createdAt.toISOString(),
    expiresAt: expiresAt?.toISOString() ?? null,
    lastUsedAt: lastUsedAt?.toISOString() ?? null,
  };
}

/** The admin's operations, on a database or through the socket of the process that has it open. */
export type Admin = {
  /** Makes a key with these scopes, and its project if there is none of that name. */
  createKey(request: z.output<typeof keyRequest>): Promise<z.output<typeof madeKey>>;
  /** Lists the keys of a project, or of all, newest first, page by page. */
  listKeys(request: z.output<typeof listRequest>): Promise<z.output<typeof keyPage>>;
  /** Revokes a key of any project. */
  revokeKey(request: { id: string }): Promise<z.output<typeof shownKey>>;
  /**
   * Revokes the keys of a project and deletes everything of it but its name, call by call as long as there is `more`.
   * `removed` is the number of submissions that this call has removed.
   */
  eraseProject(request: { project: string }): Promise<z.output<typeof erasedProject>>;
  /**
   * Erases everything of a project in which a value is found, call by call as long as there is a `next`, which is the
   * `place` of the call that goes on.
   */
  eraseValue(request: z.output<typeof valueRequest>): Promise<z.output<typeof erasedValue>>;
  /** Records that a project is exported, before it is. */
  noteExport(request: { project: string }): Promise<object>;
  /** Rows of a project, call by call as long as there is a `next`, which is the `after` of the call that goes on. */
  exportRows(request: z.output<typeof exportRequest>): Promise<z.output<typeof exportedRows>>;
  /** The chain of the audit log after that of a project, or the first. */
  nextAuditChain(request: z.output<typeof chainRequest>): Promise<z.output<typeof foundChain>>;
  /** Checks a chain of the audit log, call by call as long as there is a `next`. */
  checkAudit(request: z.output<typeof checkRequest>): Promise<z.output<typeof checkedChain>>;
  /** Lists the projects, oldest first, page by page. */
  listProjects(request: { cursor?: string | undefined }): Promise<z.output<typeof projectPage>>;
};

/** The admin of the process that has the database open. */
export type LocalAdmin = Admin & {
  /** Records that all there is was copied. */
  noteBackup(): void;
};

export type AdminOptions = {
  database: Database;
  uploads: Pick<UploadStore, 'remove'>;
  auditWriter: AuditWriter;
  /** Who the audit log says it was. */
  user: string;
  /** Seconds before each attempt to tell webhooks of what is deleted. */
  schedule: readonly number[];
  now: () => number;
  onChange: () => void;
};
