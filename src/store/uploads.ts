import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { id, text, time } from './database/columns.ts';
import type { Queries } from './database/queries.ts';
import { subtractKeylessBytes } from './keyless-storage.ts';
import { noteFileRemovals } from './removal/removals.ts';

/** A file somebody uploaded for a field. Its bytes are in the upload store under this id. */
export const UploadEntity = defineEntity({
  name: 'Upload',
  tableName: 'uploads',
  properties: {
    id: id().primary(),
    projectId: id(),
    formId: id(),
    fieldId: text(),
    filename: text(),
    contentType: text(),
    /** Bytes. */
    size: p.integer(),
    /** Hex. */
    sha256: text(),
    createdAt: time(),
    /** Whether it came without a key of its project. */
    keyless: p.boolean().default(false),
    /** Null until a submission claims it; what none claims within an hour goes. */
    submissionId: id().strictNullable(),
  },
  indexes: [
    { name: 'uploads_unclaimed', properties: ['createdAt'], where: 'submission_id is null' },
    { name: 'uploads_by_submission', properties: ['submissionId'], where: 'submission_id is not null' },
  ],
});

export type Upload = InferEntity<typeof UploadEntity>;

/** Stores what is known of a file. */
export async function insertUpload(db: Queries, upload: Upload): Promise<void> {
  await db.write((em) => em.insert(UploadEntity, upload));
}

/** Finds an upload of a project. */
export async function findUpload(db: Queries, projectId: string, uploadId: string): Promise<Upload | null> {
  return db.read((em) => em.findOne(UploadEntity, { id: uploadId, projectId }));
}

/** Finds an upload of any project. */
export async function findAnyUpload(db: Queries, uploadId: string): Promise<Upload | null> {
  return db.read((em) => em.findOne(UploadEntity, { id: uploadId }));
}

/** The uploads that a submission holds, in the order they came. */
export async function listSubmissionUploads(db: Queries, submissionId: string): Promise<Upload[]> {
  return db.read((em) => em.find(UploadEntity, { submissionId }, { orderBy: { id: 'asc' } }));
}

/** Finds those of the named uploads that belong to the form and that no submission has claimed, but for `holder`. */
export async function findUnclaimedUploads(
  db: Queries,
  formId: string,
  uploadIds: string[],
  holder?: string,
): Promise<Upload[]> {
  const $or = [{ submissionId: null }, ...(holder === undefined ? [] : [{ submissionId: holder }])];
  return db.read((em) => em.find(UploadEntity, { id: { $in: uploadIds }, formId, $or }));
}

/** Lists up to `limit` uploads of all projects in the order of their ids, from the one after `after` on. */
export async function listUploads(
  db: Queries,
  { after, limit }: { after: string; limit: number },
): Promise<Upload[]> {
  return db.read((em) => em.find(UploadEntity, { id: { $gt: after } }, { orderBy: { id: 'asc' }, limit }));
}

/** Forgets up to `limit` uploads that no submission has claimed within the time. Returns how many. */
export async function removeUnclaimedUploads(
  db: Queries,
  olderThanSeconds: number,
  limit: number,
): Promise<number> {
  return removeUploads(db, {
    where: 'submission_id is null and created_at < now() - make_interval(secs => $1)',
    params: [olderThanSeconds],
    orderBy: 'created_at',
    limit,
  });
}

/**
 * Forgets uploads, and what they count for where they came without a key, and notes that their bytes are to be
 * removed. Those that another transaction holds are left to it. Returns how many.
 */
export async function removeUploads(
  db: Queries,
  { where, params, orderBy = 'id', limit }: Removal,
): Promise<number> {
  const [row] = await db.execute(
    `with removed as (
       delete from uploads where id in (
         select id from uploads where ${where} order by ${orderBy}
         limit $${params.length + 1} for update skip locked
       ) returning id, form_id, project_id, case when keyless then size end as keyless_bytes
     ), counted as (${subtractKeylessBytes}), noted as (${noteFileRemovals})
     select count(*) as count from removed`,
    [...params, limit ?? null],
  );
  return Number(row?.count);
}

/** `where` is a condition with `params`. */
type Removal = { where: string; params: unknown[]; orderBy?: string; limit?: number };
