import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import type { FormDefinition } from '../domain/definition/definition.ts';
import { id, json, text, time } from './database/columns.ts';
import type { Queries } from './database/queries.ts';

/** A published definition of a form. Never changes, so it may be cached by id without end. */
export const VersionEntity = defineEntity({
  name: 'Version',
  tableName: 'form_versions',
  properties: {
    id: id().primary(),
    formId: id(),
    /** 1, 2, 3 … within the form. */
    number: p.integer(),
    /** Normalized, without the delivery secret. */
    definition: json<FormDefinition>(),
    /** SHA-256 of the canonical JSON of `definition`, hex. */
    checksum: text(),
    createdAt: time(),
  },
  uniques: [
    { name: 'form_versions_checksum_unique', properties: ['formId', 'checksum'] },
    { name: 'form_versions_number_unique', properties: ['formId', 'number'] },
  ],
});

export type Version = InferEntity<typeof VersionEntity>;

/** Finds a version by its id. */
export async function findVersion(db: Queries, versionId: string): Promise<Version | null> {
  return db.read((em) => em.findOne(VersionEntity, { id: versionId }));
}

/** Lists all versions of a form, newest first. */
export async function listVersions(db: Queries, formId: string): Promise<Version[]> {
  return db.read((em) => em.find(VersionEntity, { formId }, { orderBy: { number: 'desc' } }));
}
