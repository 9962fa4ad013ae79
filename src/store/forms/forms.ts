import { defineEntity, type InferEntity, LockMode, p, raw } from '@mikro-orm/core';
import type { FormDefinition } from '../../domain/definition/definition.ts';
import { KEYLESS_CREATOR } from '../../domain/ids.ts';
import { id, json, rowsOf, sealed, text, time } from '../database/columns.ts';
import {
  deleteSome,
  findPage,
  type Page,
  type PageRequest,
  type Queries,
  type Transaction,
} from '../database/queries.ts';
import type { IgnoredNames } from './ignored-names.ts';

/** A form. What it asks is in its versions, and in `draftDefinition` until it is activated. */
export const FormEntity = defineEntity({
  name: 'Form',
  tableName: 'forms',
  properties: {
    id: id().primary(),
    projectId: id(),
    /** `name` and `slug` are those of the newest definition, kept here for lists. */
    name: text(),
    slug: text(),
    status: p.enum(['draft', 'published', 'archived']).columnType('text'),
    /** `public` for a form made without a key, else the id of the key. */
    createdBy: text(),
    /**
     * Whence a form was made without a key, as a keyed hash of the client's network, for the limits of its
     * emails. Null once the owner has confirmed, and for forms made with a key.
     */
    createdFrom: text().strictNullable(),
    draftDefinition: json<FormDefinition>().strictNullable(),
    /** The draft's webhook secret, sealed; it moves to the webhook when the form is activated. */
    draftSecret: sealed().strictNullable(),
    currentVersionId: id().strictNullable(),
    /** For how many days the current version keeps submissions; null: permanently. */
    retentionDays: p.integer().strictNullable(),
    /** SHA-256 of the one-time activation token, hex; kept after use, so that a used token is recognized. */
    activationHash: text(),
    activationExpiresAt: time(),
    activatedAt: time().strictNullable(),
    /** Who is emailed. Null until activation. */
    ownerEmail: text().strictNullable(),
    /** When the owner followed the confirmation email's link. */
    ownerConfirmedAt: time().strictNullable(),
    /** An address that becomes the owner's once it has confirmed. */
    pendingOwnerEmail: text().strictNullable(),
    /** How often the form was handed over. Links to its files name it, and end with it. */
    ownerEpoch: p.integer().default(0),
    archivedAt: time().strictNullable(),
    /** When its owner closed it; null while it accepts answers. */
    closedAt: time().strictNullable(),
    /** Gone for every reader; what belongs to it is removed in the background. */
    deletedAt: time().strictNullable(),
    /** Of a hidden form, whose sessions brought their questions along: by it the same questions find it. Else null. */
    questionChecksum: id().strictNullable(),
    /** When to look whether a hidden form still has sessions. */
    questionDueAt: time().strictNullable(),
    /** Names the form in files, unique in the project; null: it has none. */
    key: text().collation('C').strictNullable(),
    /** Who keeps the form's definition, as `forms apply` names a folder. */
    managedBy: text().strictNullable(),
    /** The last submission that its owner has marked as read; null: none. */
    readUpTo: id().strictNullable(),
    /** What posts of sites' own HTML had that no field takes; null: nothing. */
    ignoredNames: json<IgnoredNames>().strictNullable(),
    createdAt: time(),
    updatedAt: time(),
  },
  indexes: [
    { name: 'forms_by_project', properties: ['projectId', 'id'] },
    {
      name: 'forms_unactivated',
      properties: ['activationExpiresAt'],
      where: `status = 'draft' and created_by = '${KEYLESS_CREATOR}'`,
    },
    { name: 'forms_deleted', properties: ['deletedAt'], where: 'deleted_at is not null' },
    {
      name: 'forms_by_owner',
      expression: 'create index "forms_by_owner" on "forms" (lower("owner_email"), "id")',
    },
    { name: 'forms_with_retention', properties: ['id'], where: 'retention_days is not null' },
    {
      name: 'forms_questions_due',
      properties: ['questionDueAt'],
      where: 'question_checksum is not null and deleted_at is null',
    },
    { name: 'forms_listed', properties: ['projectId', 'id'], where: 'question_checksum is null' },
  ],
  uniques: [
    {
      name: 'forms_key_unique',
      properties: ['projectId', 'key'],
      where: 'key is not null and deleted_at is null',
    },
    {
      name: 'forms_question_unique',
      properties: ['projectId', 'questionChecksum'],
      where: 'question_checksum is not null and deleted_at is null',
    },
  ],
});

export type Form = InferEntity<typeof FormEntity>;

/** A form without what its draft asks. */
export type FormSummary = Pick<Form, Exclude<Extract<keyof Form, string>, 'draftDefinition' | 'draftSecret'>>;

/** Stores a form. */
export async function insertForm(db: Queries, form: Form): Promise<void> {
  await db.write((em) => em.insert(FormEntity, form));
}

/** Finds a form of any project, for the routes that ask for no key. */
export async function findAnyForm(db: Queries, formId: string): Promise<Form | null> {
  return db.read((em) => em.findOne(FormEntity, { id: formId, deletedAt: null }));
}

/** Finds a form of a project. */
export async function findForm(db: Queries, projectId: string, formId: string): Promise<Form | null> {
  return db.read((em) => em.findOne(FormEntity, { id: formId, projectId, deletedAt: null }));
}

/** Finds a form of a project by its key. */
export async function findFormByKey(db: Queries, projectId: string, key: string): Promise<Form | null> {
  return db.read((em) => em.findOne(FormEntity, { projectId, key, deletedAt: null }));
}

/** The same, and keeps others from changing the form until the transaction ends. */
export async function lockFormByKey(tx: Transaction, projectId: string, key: string): Promise<Form | null> {
  const where = { projectId, key, deletedAt: null };
  return tx.read((em) => em.findOne(FormEntity, where, { lockMode: LockMode.PESSIMISTIC_WRITE }));
}

/** Gives a form its key, or says who keeps its definition. */
export async function updateForm(
  tx: Transaction,
  formId: string,
  change: Partial<Pick<Form, 'key' | 'managedBy'>>,
): Promise<void> {
  const changed = { ...change, updatedAt: raw('now()') };
  await tx.write((em) => em.nativeUpdate(FormEntity, { id: formId }, changed));
}

/** Keeps others from changing a form until the transaction ends. */
export async function lockForm(tx: Transaction, formId: string): Promise<void> {
  await tx.select('select 1 from forms where id = $1 for update', [formId]);
}

/** Lists a project's forms but hidden ones, newest first, without what their drafts ask. */
export async function listForms(
  db: Queries,
  projectId: string,
  { key, slug, managedBy, ...page }: PageRequest & Partial<Pick<Form, 'key' | 'slug' | 'managedBy'>>,
): Promise<Page<FormSummary>> {
  const named = { ...(key && { key }), ...(slug && { slug }), ...(managedBy && { managedBy }) };
  return findPage<FormSummary>(db, page, (em, before, range) => {
    const where = { projectId, deletedAt: null, questionChecksum: null, ...named, ...before };
    return em.find(FormEntity, where, { ...range, exclude: ['draftDefinition', 'draftSecret'] });
  });
}

/** The forms with these ids. */
export async function listFormsById(db: Queries, formIds: string[]): Promise<Form[]> {
  return db.read((em) => em.find(FormEntity, { id: { $in: formIds } }));
}

/**
 * Finds what every call on a form's public side needs, in one cheap read. The counts are those of the moment.
 */
export async function findFormState(db: Queries, formId: string): Promise<FormState | null> {
  const [row] = await db.select(
    `select ${states.columns}, c.accepted, c.spam from forms f ${withCounts}
     where f.id = $1 and f.deleted_at is null`,
    [formId],
  );
  // The counts are as the type has them.
  return row === undefined ? null : (states.map(row) as FormState);
}

const states = rowsOf(
  FormEntity,
  [
    'id',
    'projectId',
    'status',
    'createdBy',
    'currentVersionId',
    'closedAt',
    'ownerEpoch',
    'questionChecksum',
  ],
  'f',
);

/** Joins the counts `c` of forms `f`. */
export const withCounts = `cross join lateral (
    select greatest(0, sum(accepted))::float8 as accepted, greatest(0, sum(spam))::float8 as spam
    from form_counters where form_id = f.id
  ) c`;

/** Archives a form for good; repeating it changes nothing. False if there is no such form. */
export async function archiveForm(db: Queries, projectId: string, formId: string): Promise<boolean> {
  const change = {
    status: 'archived',
    archivedAt: raw('coalesce(archived_at, now())'),
    updatedAt: raw(`case when status = 'archived' then updated_at else now() end`),
  } as const;
  const where = { id: formId, projectId, deletedAt: null, questionChecksum: null };
  return (await db.write((em) => em.nativeUpdate(FormEntity, where, change))) > 0;
}

/** Closes an activated form, or opens it again; what is so already stays as it is, which is false. */
export async function setFormClosed(db: Queries, formId: string, closed: boolean): Promise<boolean> {
  const where = { id: formId, closedAt: closed ? null : { $ne: null } };
  const change = { closedAt: closed ? raw('now()') : null, updatedAt: raw('now()') };
  return (await db.write((em) => em.nativeUpdate(FormEntity, where, change))) > 0;
}

/** Removes up to `limit` drafts that were made without a key and not activated in time; returns which. */
export async function removeUnactivatedForms(
  db: Queries,
  limit: number,
): Promise<{ id: string; projectId: string }[]> {
  const removed = await deleteSome(db, 'forms', {
    where: `status = 'draft' and created_by = '${KEYLESS_CREATOR}' and activation_expires_at < now()`,
    orderBy: 'activation_expires_at',
    limit,
    key: 'id, project_id',
  });
  const ids = removed.map((row) => row.id);
  if (ids.length > 0) await db.execute('delete from form_counters where form_id = any($1)', [ids]);
  return removed.map((row) => ({ id: String(row.id), projectId: String(row.project_id) }));
}

export type FormState = ReturnType<typeof states.map> & FormCounts;

/** How many accepted submissions a form holds, and how many are marked as spam. */
export type FormCounts = { accepted: number; spam: number };
