import type { MessageInitShape } from '@bufbuild/protobuf';
import type { DefinitionChangeSchema } from '../../../gen/headlessforms/v1/changes_pb.js';
import { changeToMessage } from '../../domain/contracts/change-proto.ts';
import type { DefinitionChange } from '../../domain/contracts/changes.ts';
import { findVersion } from '../../store/forms/versions.ts';
import { countOpenSessions } from '../../store/sessions/sessions.ts';
import type { ServiceContext } from '../context.ts';

/** The messages of changes, with who relies now on the fields that they are about. */
export async function withAffected(
  { database }: Pick<ServiceContext, 'database'>,
  form: { id: string },
  changes: readonly DefinitionChange[],
): Promise<MessageInitShape<typeof DefinitionChangeSchema>[]> {
  const isAffecting = changes.some(({ breaks }) => breaks.length > 0);
  const openByField = isAffecting ? await openSessionsByField(database, form.id) : new Map<string, number>();
  return changes.map((change) => {
    const [, fieldId = ''] = /^fields\.(.+)$/.exec(change.path) ?? [];
    const openSessions = change.breaks.length === 0 ? 0 : (openByField.get(fieldId) ?? 0);
    return { ...changeToMessage(change), openSessions };
  });
}

/** How many open sessions ask each field, by the versions that they keep. */
async function openSessionsByField(
  database: ServiceContext['database'],
  formId: string,
): Promise<Map<string, number>> {
  const byField = new Map<string, number>();
  for (const { versionId, count } of await countOpenSessions(database, formId)) {
    const version = await findVersion(database, versionId);
    for (const { id } of version?.definition.fields ?? []) byField.set(id, (byField.get(id) ?? 0) + count);
  }
  return byField;
}
