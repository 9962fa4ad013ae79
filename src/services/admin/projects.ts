import type { ServiceImpl } from '@connectrpc/connect';
import { type AdminService, ProjectSchema } from '../../../gen/headlessforms/internal/v1/admin_pb.js';
import { demoFormId } from '../../domain/ids.ts';
import { pageSizes } from '../../domain/limits/limits.ts';
import { rowToMessage } from '../../domain/messages.ts';
import type { Transaction } from '../../store/database/database.ts';
import { removeRowsOfForm } from '../../store/forms/form-removal.ts';
import { exportNames, exportRows } from '../../store/projects/project-export.ts';
import {
  closeProject,
  countSubmissionsOfProject,
  listProjects,
  removeRowsOfProject,
} from '../../store/projects/projects.ts';
import { listFormIds } from '../../store/submissions/erasure.ts';
import { type ErasurePlace, eraseByValue, erasureProblems } from '../submissions/erasure.ts';
import {
  type AdminContext,
  adminEntry,
  existingProject,
  pagesOf,
  refusal,
  refuseProblems,
} from './context.ts';

/** Lists, exports and erases projects, and erases a person of one. */
export function adminProjects(context: AdminContext) {
  const { database, auditWriter, onChange } = context;
  return {
    async *listProjects() {
      for await (const projects of pagesOf((cursor) =>
        listProjects(database, { limit: pageSizes.max, cursor }),
      )) {
        yield {
          projects: projects.map(({ keys: keyCount, forms: formCount, ...project }) =>
            rowToMessage(ProjectSchema, project, { keyCount, formCount }),
          ),
        };
      }
    },

    async *eraseProject({ project: name }) {
      const { id: projectId } = await existingProject(database, name);
      for (let after: string | null = ''; after !== null; ) {
        await database.transaction(async (tx) => {
          const closed = await closeProject(tx, projectId);
          // After the first time, only what somebody has made meanwhile is left to close.
          if (closed.keys + closed.forms > 0) {
            const about = { projectId, resource: projectId, count: closed.forms };
            await auditWriter.store(tx, adminEntry(context, { action: 'project.erased', ...about }));
          }
        });
        onChange();
        const step = await removeProjectRows(context, { projectId, after });
        yield { removed: step.removed };
        after = step.next;
      }
    },

    async *eraseValue({ project: name, value, includeMentions }) {
      const { id: projectId } = await existingProject(database, name);
      refuseProblems(erasureProblems(value));
      const record = (tx: Transaction, about: { formId?: string; count: number; detail: string }) =>
        auditWriter.store(tx, adminEntry(context, { projectId, action: 'submission.erased', ...about }));
      let place: ErasurePlace | undefined;
      do {
        const erased = await eraseByValue(
          { ...context, onErased: onChange, record },
          { projectId, value, formId: '', place, includeMentions },
        );
        yield erased;
        place = erased.next;
      } while (place !== undefined);
    },

    async noteExport({ project: name }) {
      const { id: projectId } = await existingProject(database, name);
      const entry = adminEntry(context, { projectId, action: 'project.exported', resource: projectId });
      await database.transaction((tx) => auditWriter.store(tx, entry));
      return {};
    },

    async *exportRows({ project: name, table }) {
      const { id: projectId } = await existingProject(database, name);
      const kind = exportNames.find((each) => each === table);
      if (kind === undefined) throw refusal(`There is no table ${table} to export.`);
      for (let after: string | null = ''; after !== null; ) {
        const page = await exportRows(database, kind, { projectId, after });
        yield page;
        after = page.next;
      }
    },
  } satisfies Partial<ServiceImpl<typeof AdminService>>;
}

/**
 * Goes on for `TIME_SLICE_MS`, from the form after `after` on: `next` is the last form that is done. What belongs to
 * forms goes first, so that what tells of them is looked through once.
 */
async function removeProjectRows(
  { database, now, schedule }: AdminContext,
  { projectId, after }: { projectId: string; after: string },
): Promise<{ removed: number; next: string | null }> {
  const announcement = { at: now(), schedule };
  const until = performance.now() + TIME_SLICE_MS;
  const before = await countSubmissionsOfProject(database, projectId);
  let next: string | null = after;
  while (next !== null && performance.now() < until) {
    const [formId] = await listFormIds(database, projectId, { after: next, limit: 1 });
    if (formId === undefined) {
      if (!(await removeRowsOfProject(database, projectId, GROUP))) next = null;
    } else if (formId === demoFormId) {
      next = formId;
    } else {
      const more = await removeRowsOfForm(database, { formId, limit: GROUP }, announcement);
      if (!more) next = formId;
    }
  }
  return { removed: before - (await countSubmissionsOfProject(database, projectId)), next };
}

/** The caller shows how far the removal has come. */
const TIME_SLICE_MS = 1_000;

/** Rows of one statement: some milliseconds. */
const GROUP = 100;
