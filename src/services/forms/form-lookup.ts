import type { FormDefinition } from '../../domain/definition/definition.ts';
import { isId } from '../../domain/ids.ts';
import type { Caller } from '../../rpc/context.ts';
import { notFound } from '../../rpc/errors.ts';
import type { Queries } from '../../store/database/database.ts';
import { type Form, findForm } from '../../store/forms.ts';
import { findVersion } from '../../store/versions.ts';

/** A form of the caller's project, in any status. Throws NOT_FOUND. */
export async function formOf(db: Queries, caller: Caller, formId: string): Promise<Form> {
  const form = isId('form', formId) ? await findForm(db, caller.projectId, formId) : null;
  if (form === null) throw notFound('form');
  return form;
}

/** A form's current definition, or a draft's first. */
export async function definitionInUse(db: Queries, form: Form): Promise<FormDefinition> {
  const version = form.currentVersionId === null ? null : await findVersion(db, form.currentVersionId);
  const definition = version?.definition ?? form.draftDefinition;
  if (definition === null) throw new TypeError(`The form ${form.id} has no definition`);
  return definition;
}
