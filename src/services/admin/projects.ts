import type { z } from 'zod';
import { demoFormId } from '../../domain/ids.ts';
import { pageSizes } from '../../domain/limits/limits.ts';
import type { Transaction } from '../../store/database/database.ts';
import { removeRowsOfForm } from '../../store/forms/form-removal.ts';
import { exportRows } from '../../store/projects/project-export.ts';
import {
  closeProject,
  countSubmissionsOfProject,
  removeRowsOfProject,
} from '../../store/projects/project-removal.ts';
import { listProjects } from '../../store/projects/projects.ts';
import { listFormIds } from '../../store/submissions/erasure.ts';
import { eraseByValue, erasureProblems, placeOf, tokenOf } from '../submissions/erasure.ts';
import { type AdminContext, adminEntry, existingProject, refuseProblems } from './context.ts';
import type {
  erasedProject,
  erasedValue,
  exportedRows,
  exportRequest,
  projectPage,
  valueRequest,
} from './messages.ts';

/** Lists, exports and erases projects, and erases a person of one. */
export function createAdminProjects(context: AdminContext): AdminProjects {
  const { database, auditWriter, onChange } = context;
  return {
    async listProjects({ cursor }) {
      const { items, nextCursor } = await listProjects(database, { limit: pageSizes.max, cursor });
      return {
        items: items.map(({ createdAt, ...project }) => ({ ...project, createdAt: createdAt.toISOString() })),
        nextCursor,
      };
    },

    async eraseProject({ project: name }) {
      const { id: projectId } = await existingProject(database, name);
      await database.transaction(async (tx) => {
        const closed = await closeProject(tx, projectId);
        // The calls that go on have nothing left to close.
        if (closed.keys + closed.forms > 0) {
          const about = { projectId, resource: projectId, count: closed.forms };
          await auditWriter.store(tx, adminEntry(context, { action: 'project.erased', ...about }));
        }
      });
      onChange();
      return removeProjectRows(context, projectId);
    },

    async eraseValue({ project: name, value, place }) {
      const { id: projectId } = await existingProject(database, name);
      refuseProblems(erasureProblems(value));
      const record = (tx: Transaction, about: { formId?: string; count: number; detail: string }) =>
        auditWriter.store(tx, adminEntry(context, { projectId, action: 'submission.erased', ...about }));
      const begin = place === null ? undefined : placeOf(place);
      const erasure = { projectId, value, formId: '', place: begin };
      const erased = await eraseByValue({ ...context, onErased: onChange, record }, erasure);
      return { ...erased, next: erased.next === undefined ? null : tokenOf(erased.next) };
    },

    async noteExport({ project: name }) {
      const { id: projectId } = await existingProject(database, name);
      const entry = adminEntry(context, { projectId, action: 'project.exported', resource: projectId });
      await database.transaction((tx) => auditWriter.store(tx, entry));
      return {};
    },

    async exportRows({ project: name, name: kind, after, lines }) {
      const { id: projectId } = await existingProject(database, name);
      return exportRows(database, kind, { projectId, after, lines });
    },
  };
}

/** Goes on for `TURN_MS`. What belongs to forms goes first, so that what tells of them is looked through once. */
async function removeProjectRows(
  { database, now, uploads, schedule }: AdminContext,
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

export type AdminProjects = {
  /** Lists the projects, oldest first, page by page. */
  listProjects(request: { cursor?: string | undefined }): Promise<z.output<typeof projectPage>>;
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
};
