import type { MessageInitShape } from '@bufbuild/protobuf';
import type { DefinitionChangeSchema } from '../../../gen/headlessforms/v1/changes_pb.js';
import { changeToMessage } from '../../domain/contracts/change-proto.ts';
import type { DefinitionChange } from '../../domain/contracts/changes.ts';
import { fieldsNamedIn } from '../../domain/events/template.ts';
import { holds } from '../../domain/scopes.ts';
import type { Caller } from '../../rpc/context.ts';
import type { Queries } from '../../store/database/database.ts';
import type { Form } from '../../store/forms/forms.ts';
import { findVersion } from '../../store/forms/versions.ts';
import { countOpenSessions } from '../../store/sessions/sessions.ts';
import { listTemplates } from '../../store/webhooks/webhooks.ts';

/** The messages of changes, with who relies now on the fields that they are about, as far as the caller may know. */
export async function withAffected(
  db: Queries,
  { scopes }: Pick<Caller, 'scopes'>,
  form: Form,
  changes: readonly DefinitionChange[],
): Promise<MessageInitShape<typeof DefinitionChangeSchema>[]> {
  if (changes.every(({ breaks }) => breaks.length === 0)) return changes.map(changeToMessage);
  const openByField = await openSessionsByField(db, form.id);
  const templates = (await listTemplates(db, form)).map(({ id, template }) => ({
    id,
    fields: fieldsNamedIn(template),
  }));
  const maySee = holds(scopes, 'webhooks:read');
  return changes.map((change) => {
    const [, fieldId = ''] = /^fields\.(.+)$/.exec(change.path) ?? [];
    const naming = change.breaks.includes('webhooks')
      ? templates.filter(({ fields }) => fields.has(fieldId))
      : [];
    return {
      ...changeToMessage(change),
      openSessions: change.breaks.length === 0 ? 0 : (openByField.get(fieldId) ?? 0),
      webhooks: naming.length,
      webhookIds: maySee ? naming.map(({ id }) => id) : [],
    };
  });
}

/** How many open sessions ask each field, by the versions that they keep. */
async function openSessionsByField(db: Queries, formId: string): Promise<Map<string, number>> {
  const byField = new Map<string, number>();
  for (const { versionId, count } of await countOpenSessions(db, formId)) {
    const version = await findVersion(db, versionId);
    for (const { id } of version?.definition.fields ?? []) byField.set(id, (byField.get(id) ?? 0) + count);
  }
  return byField;
}
