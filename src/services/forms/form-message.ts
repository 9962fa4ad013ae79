import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { FormDefinition as DefinitionMessage } from '../../../gen/forms/v1/definition_pb.js';
import { type FormSchema, FormStatus, type FormVersionSchema } from '../../../gen/forms/v1/forms_pb.js';
import {
  checkDefinition,
  type DefinitionOptions,
  type FormDefinition,
} from '../../domain/definition/definition.ts';
import { definitionFromMessage, definitionToMessage } from '../../domain/definition/definition-message.ts';
import { invalid } from '../../rpc/errors.ts';
import type { Form } from '../../store/forms.ts';
import type { VersionSummary } from '../../store/versions.ts';

/** A form as callers see it; lists leave the definition out. */
export function formMessage(form: Form, definition?: FormDefinition): MessageInitShape<typeof FormSchema> {
  const { id, name, slug, status, currentVersionId, createdBy, ownerEmail } = form;
  return {
    id,
    name,
    slug,
    status: statuses[status],
    currentVersionId: currentVersionId ?? '',
    createdBy,
    ownerEmail: ownerEmail ?? '',
    createTime: timestampFromDate(form.createdAt),
    ...(form.activatedAt !== null && { activateTime: timestampFromDate(form.activatedAt) }),
    ...(form.archivedAt !== null && { archiveTime: timestampFromDate(form.archivedAt) }),
    ...(definition !== undefined && { definition: definitionToMessage(definition) }),
  };
}

/** A version of a form as callers see it; lists leave the definition out. */
export function versionMessage(
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

/** Reads and checks a definition that a caller sent. Throws INVALID with every problem. */
export function definitionOf(
  message: DefinitionMessage | undefined,
  options: DefinitionOptions,
): { definition: FormDefinition; deliverySecret?: string } {
  const checked = checkDefinition(message && definitionFromMessage(message), options);
  if (!checked.ok) throw invalid(checked.violations);
  return checked;
}

const statuses: Record<Form['status'], FormStatus> = {
  draft: FormStatus.DRAFT,
  published: FormStatus.PUBLISHED,
  archived: FormStatus.ARCHIVED,
};
