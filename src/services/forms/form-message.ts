import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import {
  type CreatorSchema,
  CreatorType,
  type FormSchema,
  FormStatus,
  type FormVersionSchema,
} from '../../../gen/forms/v1/forms_pb.js';
import type { FormDefinition } from '../../domain/definition/definition.ts';
import { definitionToMessage } from '../../domain/definition/definition-message.ts';
import { missingTranslations } from '../../domain/definition/missing-translations.ts';
import type { Share } from '../../domain/definition/share.ts';
import type { Form, FormSummary } from '../../store/forms/forms.ts';
import type { VersionSummary } from '../../store/forms/versions.ts';

/** A form as callers see it; lists leave the definition out. */
export function formToMessage(
  form: FormSummary,
  definition?: FormDefinition,
  share?: Share,
): MessageInitShape<typeof FormSchema> {
  const { id, name, slug, status, currentVersionId, createdBy, ownerEmail } = form;
  return {
    id,
    name,
    slug,
    status: statuses[status],
    currentVersionId: currentVersionId ?? '',
    createdBy: creatorOf(createdBy),
    ownerEmail: ownerEmail ?? '',
    createTime: timestampFromDate(form.createdAt),
    ...(form.activatedAt !== null && { activateTime: timestampFromDate(form.activatedAt) }),
    ...(form.archivedAt !== null && { archiveTime: timestampFromDate(form.archivedAt) }),
    ...(form.closedAt !== null && { closeTime: timestampFromDate(form.closedAt) }),
    ...(definition !== undefined && {
      definition: definitionToMessage(definition),
      missingTranslations: missingTranslations(definition),
    }),
    ...(share !== undefined && { share }),
  };
}

/** What a form asks, as callers without a key see it: nothing of its owner, its maker and its receivers. */
export function formToStranger(
  { id, name, slug, currentVersionId }: FormSummary,
  definition: FormDefinition,
): MessageInitShape<typeof FormSchema> {
  const { delivery: _, ...described } = definitionToMessage(definition);
  return { id, name, slug, currentVersionId: currentVersionId ?? '', definition: described };
}

/** A version of a form as callers see it; lists leave the definition out. */
export function versionToMessage(
  version: VersionSummary,
  form: Pick<Form, 'currentVersionId'>,
  definition?: FormDefinition,
): MessageInitShape<typeof FormVersionSchema> {
  const { id, number, checksum, createdAt } = version;
  return {
    id,
    number,
    checksum,
    createTime: timestampFromDate(createdAt),
    current: id === form.currentVersionId,
    ...(definition !== undefined && { definition: definitionToMessage(definition) }),
  };
}

/** Who made a form, as the database has it: `public`, `system` or the id of a key. */
function creatorOf(createdBy: string): MessageInitShape<typeof CreatorSchema> {
  if (createdBy === 'public') return { type: CreatorType.PUBLIC };
  if (createdBy === 'system') return { type: CreatorType.SYSTEM };
  return { type: CreatorType.KEY, keyId: createdBy };
}

const statuses: Record<Form['status'], FormStatus> = {
  draft: FormStatus.DRAFT,
  published: FormStatus.PUBLISHED,
  archived: FormStatus.ARCHIVED,
};
