import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AnswersSchemaFormat, FormStatus } from '../../../gen/headlessforms/v1/forms_pb.js';
import { hasCode } from '../../domain/errors/system-errors.ts';
import { isId } from '../../domain/ids.ts';
import { ownValue } from '../../domain/json/json.ts';
import { RefusedError, UsageError } from '../terminal.ts';
import { loadForm, type NewFile, writeFiles } from './files.ts';
import { type Forms, listAllForms, problemsIn } from './plan.ts';

/** What is generated of the answers to forms, as `--lang` names it. */
const formats: Record<string, AnswersSchemaFormat> = {
  proto: AnswersSchemaFormat.PROTO,
  ts: AnswersSchemaFormat.TYPESCRIPT,
  'json-schema': AnswersSchemaFormat.JSON_SCHEMA,
};

/**
 * Writes the types of the answers to a form, to all published forms of the project, or to the form of a file as
 * publication would make them, into a folder. With proto files
 * the folder is a module of buf; its `buf.yaml` is written once, so that it can be changed.
 *
 * Throws a `RefusedError` if there is no such form, or if two forms would be the same file.
 */
export async function writeTypes({ client, form, file, lang, out, print }: TypesOptions): Promise<void> {
  const format = ownValue(formats, lang);
  if (format === undefined)
    throw new UsageError(`--lang: Expected one of ${Object.keys(formats).join(', ')}`);

  const files: NewFile[] = file === undefined ? [] : [await typesOfFile(client, file, format)];
  for (const { id, name: of } of file === undefined ? await formsToWrite(client, form) : []) {
    const { path, content } = await client.getAnswersSchema({ formId: id, format });
    files.push({ path, content, of });
  }
  await writeFiles(out, files, { flag: 'w', print });
  if (format === AnswersSchemaFormat.PROTO) await writeModule(join(out, 'buf.yaml'));
}

async function typesOfFile(client: Forms, path: string, schemaFormat: AnswersSchemaFormat): Promise<NewFile> {
  const file = await loadForm(path);
  const { key, definition } = file;
  const [form] = (await client.listForms({ key, pageSize: 1 })).forms;
  // A draft gets its numbers when it is first published.
  const against =
    form === undefined || form.status === FormStatus.DRAFT ? { key } : { againstFormId: form.id };
  const { schema } = await client.validateForm({ definition, schemaFormat, ...against }).catch((error) => {
    throw new RefusedError(problemsIn(file, error));
  });
  return { path: schema?.path ?? '', content: schema?.content ?? '', of: key };
}

/** The published forms of the project, or the one with this id or key. */
async function formsToWrite(
  client: Forms,
  form: string | undefined,
): Promise<{ id: string; name: string }[]> {
  if (form !== undefined && isId('form', form)) return [{ id: form, name: form }];
  const forms =
    form === undefined
      ? (await listAllForms(client)).filter(({ status }) => status === FormStatus.PUBLISHED)
      : (await client.listForms({ key: form, pageSize: 1 })).forms;
  if (forms.length > 0) return forms.map(({ id, key }) => ({ id, name: key || id }));
  throw new RefusedError(form === undefined ? 'There are no published forms' : `No form has the key ${form}`);
}

/** Versions are in no name of what is generated, which buf's usual rules for style want. */
async function writeModule(path: string): Promise<void> {
  const rules = 'lint:\n  use:\n    - MINIMAL\nbreaking:\n  use:\n    - FILE\n';
  try {
    await writeFile(path, `version: v2\n${rules}`, { flag: 'wx' });
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error;
  }
}

type TypesOptions = {
  client: Forms;
  /** The id or key of a form; absent: all that are published. */
  form?: string | undefined;
  /** The file of a form, in place of it. */
  file?: string | undefined;
  /** One of `formats`. */
  lang: string;
  /** The folder; it is made if there is none. */
  out: string;
  /** Writes the name of a file. */
  print: (line: string) => void;
};
