import { type Queries, textOrNull } from './database/queries.ts';
import type { Form } from './forms.ts';

/**
 * What each call on a form's public side must know of it, in one cheap read: null if there is no
 * such form. The counts are those stored when it is read.
 */
export async function findFormState(db: Queries, formId: string): Promise<FormState | null> {
  const [row] = await db.query(
    `select f.project_id, f.status, f.created_by, f.current_version_id, c.accepted, c.spam
       from forms f
      cross join lateral (
        select coalesce(sum(accepted), 0)::float8 as accepted, coalesce(sum(spam), 0)::float8 as spam
          from form_counters where form_id = f.id
      ) c
      where f.id = $1`,
    [formId],
  );
  if (row === undefined) return null;
  return {
    id: formId,
    projectId: String(row.project_id),
    status: statusOf(row.status),
    createdBy: String(row.created_by),
    currentVersionId: textOrNull(row.current_version_id),
    accepted: Number(row.accepted),
    spam: Number(row.spam),
  };
}

function statusOf(value: unknown): Form['status'] {
  if (value === 'draft' || value === 'published' || value === 'archived') return value;
  throw new TypeError(`Not the status of a form: ${String(value)}`);
}

export type FormState = {
  id: string;
  projectId: string;
  status: Form['status'];
  /** `public`, or the id of a key. */
  createdBy: string;
  currentVersionId: string | null;
  /** How many accepted submissions the form holds, and how many taken for spam. */
  accepted: number;
  spam: number;
};
