import { type Client, ConnectError } from '@connectrpc/connect';
import type { DefinitionChange } from '../../../gen/headlessforms/v1/changes_pb.js';
import type { FormDefinition } from '../../../gen/headlessforms/v1/definition_pb.js';
import { type Form, FormStatus, type FormsService } from '../../../gen/headlessforms/v1/forms_pb.js';
import { jsonPathOf } from '../../domain/definition/definition-path.ts';
import { ownerProblems } from '../../domain/definition/delivery.ts';
import { failureOf } from '../../domain/errors/failure.ts';
import { type FormFile, refuseAll } from './files.ts';

/**
 * What has to be done for the service to have the forms of a folder. With `prune`, forms that `managedBy` keeps and
 * that no file has are archived.
 *
 * Throws a `RefusedError` with all problems that the service finds, each at its line.
 */
export async function planForms(
  client: Forms,
  files: readonly FormFile[],
  { managedBy, prune, env }: { managedBy: string; prune: boolean; env: NodeJS.ProcessEnv },
): Promise<Step[]> {
  const steps: Step[] = [];
  const problems: string[] = [];
  for (const file of files) {
    const planned = await planForm(client, file, env);
    if (Array.isArray(planned)) problems.push(...planned);
    else steps.push(planned);
  }
  refuseAll(problems);
  if (!prune) return steps;
  const keys = new Set(files.map(({ key }) => key));
  const gone = (await listAllForms(client, managedBy)).filter(
    ({ key, status }) => !keys.has(key) && status !== FormStatus.ARCHIVED,
  );
  return [
    ...steps,
    ...gone.map((form): Step => ({ ...unchanged, action: 'archive', key: form.key || form.id, form })),
  ];
}

/** All forms of the key's project; with `managedBy` only those that it keeps. */
export async function listAllForms(client: Forms, managedBy = ''): Promise<Form[]> {
  const all: Form[] = [];
  for (let pageToken = '', more = true; more; more = pageToken !== '') {
    const page = await client.listForms({ managedBy, pageSize: 100, pageToken });
    all.push(...page.forms);
    pageToken = page.nextPageToken;
  }
  return all;
}

/** What has to be done for one file, or its problems. */
async function planForm(client: Forms, file: FormFile, env: NodeJS.ProcessEnv): Promise<Step | string[]> {
  const { key, owner, managedBy } = file;
  const listed = (await client.listForms({ key, pageSize: 1 })).forms[0];
  const form = listed === undefined ? undefined : (await client.getForm({ formId: listed.id })).form;
  if (form?.status === FormStatus.ARCHIVED) {
    return [file.problemAt({ path: 'key', message: `The form ${form.id} with the key ${key} is archived` })];
  }
  const current = form?.status === FormStatus.PUBLISHED ? form : undefined;
  const secret = secretFor(file, current, env);
  if ('problem' in secret) return [file.problemAt({ path: 'delivery.secret', message: secret.problem })];
  const { definition } = secret;
  try {
    if (current === undefined) {
      const { channel } = definition.delivery ?? {};
      const further = channel?.case === 'email' ? channel.value.to : undefined;
      const ownerless = ownerProblems(further, owner);
      if (ownerless.length > 0) return ownerless.map(file.problemAt);
      await client.validateForm({ definition });
      return { ...unchanged, action: form === undefined ? 'create' : 'publish', key, file, form, definition };
    }
    const { changes, breaking } = await client.validateForm({ definition, againstFormId: current.id });
    const beside = [
      // One that was asked and has not confirmed yet is not asked again.
      ...(owner === current.pendingOwnerEmail ? [] : besideChange('owner', current.ownerEmail, owner)),
      ...besideChange('managed_by', current.managedBy, managedBy),
    ];
    const action = changes.length + beside.length > 0 ? 'update' : 'none';
    return { action, key, file, form, definition, changes, beside, isRefused: breaking };
  } catch (error) {
    return problemsIn(file, error);
  }
}

/** What the service has found wrong with the definition of a file, each at its line. Throws any other error. */
export function problemsIn({ problemAt }: FormFile, error: unknown): string[] {
  const violations = failureOf(error)?.violations ?? [];
  if (!(error instanceof ConnectError) || violations.length === 0) throw error;
  return violations.map(({ path, message }) => problemAt({ path: jsonPathOf(path) ?? path, message }));
}

function besideChange(name: string, from: string, to: string): BesideChange[] {
  return to === '' || to === from ? [] : [{ name, from, to }];
}

/** The definition with the secret of a webhook that is new; one that is there keeps the secret it has. */
function secretFor(
  { definition, secretVariable }: FormFile,
  current: Form | undefined,
  env: NodeJS.ProcessEnv,
): { definition: FormDefinition } | { problem: string } {
  const { delivery } = definition;
  const isNew = current?.definition?.delivery?.channel.case !== 'webhook';
  if (delivery?.channel.case !== 'webhook' || !isNew) return { definition };
  if (secretVariable === undefined) {
    // One that the service made would be shown once, in the log of whatever ran this.
    return { problem: `Required for a new webhook: the environment variable with its secret, as "\${NAME}"` };
  }
  const secret = env[secretVariable] ?? '';
  if (secret === '') return { problem: `The environment variable ${secretVariable} is not set` };
  const value = { ...delivery.channel.value, secret };
  return { definition: { ...definition, delivery: { ...delivery, channel: { case: 'webhook', value } } } };
}

const unchanged = { changes: [], beside: [], isRefused: false };

export type Forms = Client<typeof FormsService>;

/** What has to be done with one form. */
export type Step = {
  action: 'create' | 'publish' | 'update' | 'archive' | 'none';
  key: string;
  /** Absent where the form is archived. */
  file?: FormFile;
  /** As the service has it. */
  form?: Form | undefined;
  /** As the file has it, with the secret of a new webhook. */
  definition?: FormDefinition;
  changes: DefinitionChange[];
  beside: BesideChange[];
  /** Whether the form's `compatibility` refuses the changes. */
  isRefused: boolean;
};

/** A change of what stands beside the definition. */
type BesideChange = { name: string; from: string; to: string };
