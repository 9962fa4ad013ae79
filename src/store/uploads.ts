import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { id, text, time } from './columns.ts';

/** A file somebody uploaded for a field. Its bytes lie in the upload store under this id. */
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
    /** Null until a submission claims it; what none claims within an hour goes. */
    submissionId: id().nullable(),
  },
  indexes: [
    { name: 'uploads_unclaimed', properties: ['createdAt'], where: 'submission_id is null' },
    { name: 'uploads_by_submission', properties: ['submissionId'], where: 'submission_id is not null' },
  ],
});

export type Upload = InferEntity<typeof UploadEntity>;
