import type { FormDefinition } from '../../domain/definition/definition.ts';
import { newId } from '../../domain/ids.ts';
import { checksum } from '../../domain/json/canonical.ts';
import type { Form } from '../../store/forms/forms.ts';
import type { Version } from '../../store/forms/versions.ts';

/** The row of a draft. `draft` says what forms differ in; `at` is when it is made. */
export function newForm(definition: FormDefinition, draft: Draft, at: Date): Form {
  return {
    ...draft,
    name: definition.name,
    slug: definition.slug,
    status: 'draft',
    draftDefinition: definition,
    currentVersionId: null,
    retentionDays: null,
    activatedAt: null,
    ownerEmail: null,
    ownerConfirmedAt: null,
    pendingOwnerEmail: null,
    archivedAt: null,
    closedAt: null,
    deletedAt: null,
    createdAt: at,
    updatedAt: at,
  };
}

/** A version of a form before it has its place in it. */
export function newVersion(
  definition: FormDefinition,
  at: Date,
): Pick<Version, 'id' | 'definition' | 'checksum' | 'createdAt'> {
  return { id: newId('ver', at.getTime()), definition, checksum: checksum(definition), createdAt: at };
}

type Draft = Pick<
  Form,
  'id' | 'projectId' | 'createdBy' | 'createdFrom' | 'draftSecret' | 'activationHash' | 'activationExpiresAt'
>;
