import { mkdir } from 'node:fs/promises';
import { isDeepStrictEqual } from 'node:util';
import type { FormDefinition } from '../../../gen/headlessforms/v1/definition_pb.js';
import { FormStatus } from '../../../gen/headlessforms/v1/forms_pb.js';
import { checkDefinition, withoutDefaults } from '../../domain/definition/definition.ts';
import { definitionFromMessage } from '../../domain/definition/definition-proto.ts';
import { RefusedError } from '../terminal.ts';
import { formFilesIn, type NewFile, writeFiles } from './files.ts';
import { type Forms, listAllForms } from './plan.ts';

/**
 * Writes each published form that has a key as a file, without secrets, so that a plan of the folder has no changes.
 * Throws a `RefusedError` if the folder has forms already, or the key can't read the URLs of webhooks.
 */
export async function exportForms({
  client,
  server,
  folder,
  managedBy,
  print,
  note,
}: ExportOptions): Promise<void> {
  await mkdir(folder, { recursive: true });
  if ((await formFilesIn(folder)).length > 0) throw new RefusedError(`${folder}: It has forms already`);
  const published = (await listAllForms(client)).filter(({ status }) => status === FormStatus.PUBLISHED);
  const named = published.filter(({ key }) => key !== '');
  const files: NewFile[] = [];
  for (const { id } of named) {
    const { form } = await client.getForm({ formId: id });
    if (form?.definition === undefined) continue;
    const { channel } = form.definition.delivery ?? {};
    if (channel?.case === 'webhook' && channel.value.url === '') {
      throw new RefusedError(`${form.key}: The key needs the scope webhooks:read: the form has a webhook`);
    }
    // A form that somebody else keeps, or nobody, stays so.
    const file = {
      $schema: new URL('schemas/form.json', server.endsWith('/') ? server : `${server}/`).href,
      ...(form.ownerEmail !== '' && { owner: form.ownerEmail }),
      ...(form.managedBy !== managedBy && { managed_by: form.managedBy }),
      ...shortened(form.definition),
    };
    const path = `${form.key}.form.json`;
    files.push({ path, content: `${JSON.stringify(file, null, 2)}\n`, of: form.key });
  }
  await writeFiles(folder, files, { flag: 'wx', print });
  const left = published.length - named.length;
  if (left > 0) note(`${left} forms have no key: PATCH /v1/forms/:id gives them one`);
}

/** The JSON of a definition: without defaults, if it means the same then. */
function shortened(message: FormDefinition): object {
  const options = { keyless: false, allowPrivateUrls: true };
  const whole = definitionFromMessage(message) as object;
  const checked = checkDefinition(whole, options);
  if (!checked.ok) return whole;
  const short = withoutDefaults(checked.definition, options);
  const again = checkDefinition(short, options);
  return again.ok && isDeepStrictEqual(again.definition, checked.definition) ? short : whole;
}

export type ExportOptions = {
  client: Forms;
  /** Where the service is, for the address of the schema. */
  server: string;
  folder: string;
  /** What the folder is called as a keeper of forms. */
  managedBy: string;
  /** Writes the name of a file. */
  print: (line: string) => void;
  note: (line: string) => void;
};
