import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import type { FormDefinition } from '../domain/definition.ts';
import { id, json, text, time } from './columns.ts';

/** A form. What it asks lies in its versions, and in `draftDefinition` until it is activated. */
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
    draftDefinition: json<FormDefinition>().nullable(),
    /** The draft's webhook secret, sealed; it moves to the webhook when the form is activated. */
    draftSecret: text().nullable(),
    currentVersionId: id().nullable(),
    /** SHA-256 of the one-time activation token, hex; kept after use so that a used token can be told. */
    activationHash: text(),
    activationExpiresAt: time(),
    activatedAt: time().nullable(),
    /** Who is mailed. Null until activation. */
    ownerEmail: text().nullable(),
    /** When the owner followed the confirmation mail's link. */
    ownerConfirmedAt: time().nullable(),
    /** An address that becomes the owner's once it has confirmed. */
    pendingOwnerEmail: text().nullable(),
    archivedAt: time().nullable(),
    createdAt: time(),
    updatedAt: time(),
  },
  indexes: [
    { name: 'forms_by_project', properties: ['projectId', 'id'] },
    {
      name: 'forms_unactivated',
      properties: ['activationExpiresAt'],
      where: "status = 'draft' and created_by = 'public'",
    },
  ],
});

export type Form = InferEntity<typeof FormEntity>;
