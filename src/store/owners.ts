import { raw } from '@mikro-orm/core';
import type { Queries } from './database/queries.ts';
import { FormEntity } from './forms.ts';

/** Notes who shall own the form once the address confirms, and says whether there is such a form. */
export async function proposeOwner(
  db: Queries,
  projectId: string,
  formId: string,
  email: string,
): Promise<boolean> {
  const where = { id: formId, projectId, deletedAt: null };
  const change = { pendingOwnerEmail: email, updatedAt: raw('now()') };
  return (await db.write((em) => em.nativeUpdate(FormEntity, where, change))) > 0;
}

/**
 * Records that an address followed its confirmation link: the owner is confirmed, or the proposed owner
 * takes over. False if the address is neither of them any more.
 */
export async function confirmOwner(db: Queries, formId: string, email: string): Promise<boolean> {
  const rows = await db.execute(
    `update forms set
       owner_confirmed_at = case when owner_email = $2 then coalesce(owner_confirmed_at, now()) else now() end,
       owner_email = $2,
       pending_owner_email = nullif(pending_owner_email, $2),
       created_from = null,
       updated_at = now()
     where id = $1 and (owner_email = $2 or pending_owner_email = $2) and deleted_at is null returning id`,
    [formId, email],
  );
  return rows.length > 0;
}

/**
 * Confirmed owners of a form, or of a project's forms, that was made with a key: whom to tell about a webhook.
 * Anybody can own a form of the project that was made without one. At most `limit`.
 */
export async function listOwners(
  db: Queries,
  { projectId, formId, limit }: { projectId: string; formId: string | null; limit: number },
): Promise<{ formId: string; formName: string; address: string }[]> {
  const rows = await db.select(
    `select distinct on (owner_email) id, name, owner_email from forms
     where project_id = $1 and ($2::text is null or id = $2) and created_by <> 'public'
       and owner_confirmed_at is not null and owner_email is not null and deleted_at is null
     order by owner_email, id limit $3`,
    [projectId, formId, limit],
  );
  return rows.map((row) => ({
    formId: String(row.id),
    formName: String(row.name),
    address: String(row.owner_email),
  }));
}
