import type { HandlerContext } from '@connectrpc/connect';
import { Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import type { UpdateFormRequest } from '../../../gen/headlessforms/v1/forms_pb.js';
import { failed, invalid, notFound } from '../../domain/errors/failure.ts';
import type { Violation } from '../../domain/errors/violations.ts';
import { isId, isKeyless } from '../../domain/ids.ts';
import { formKeyPattern, formLimits } from '../../domain/limits/limits.ts';
import { callerOf } from '../../rpc/context.ts';
import type { Transaction } from '../../store/database/database.ts';
import { type Form, findFormByKey, lockForm, updateForm } from '../../store/forms/forms.ts';
import { lockProject } from '../../store/projects/projects.ts';
import type { ServiceContext } from '../context.ts';
import { textProblems } from '../request-values.ts';
import { changeableForm } from './form-access.ts';
import { formToMessage } from './form-proto.ts';

/**
 * What a request says of the key of a form and of who keeps its definition; null where it says nothing. Throws INVALID
 * with all that is wrong with it; `keyless` callers can give neither.
 */
export function readFormKey(
  { key, managedBy = '' }: { key: string; managedBy?: string },
  { keyless }: { keyless: boolean },
): Pick<Form, 'key' | 'managedBy'> {
  const problems: Violation[] = [];
  const refuse = (path: string, message: string) => problems.push({ path, code: 'invalid_string', message });
  if (key !== '' && keyless) refuse('key', NEEDS_KEY);
  else if (key !== '' && !formKeyPattern.test(key)) refuse('key', KEY_SHAPE);
  if (managedBy !== '' && keyless) refuse('managed_by', NEEDS_KEY);
  problems.push(
    ...textProblems(managedBy, 'managed_by', { max: formLimits.managedBy, code: 'invalid_string' }),
  );
  if (problems.length > 0) throw invalid(problems);
  return { key: key || null, managedBy: managedBy || null };
}

const NEEDS_KEY = 'Only calls with an API key can name forms for files';
const KEY_SHAPE = 'A key has 1 to 64 of a-z, 0-9, ".", "_" and "-", and begins with a letter or digit';

/** Throws CONFLICT if a form of the project has the key, and keeps others from giving it meanwhile. */
export async function refuseTakenKey(tx: Transaction, projectId: string, key: string): Promise<void> {
  await lockProject(tx, projectId);
  const holder = await findFormByKey(tx, projectId, key);
  if (holder !== null) throw failed(Reason.CONFLICT, `The form ${holder.id} has this key`);
}

/** Gives a form its key, once, or says who keeps its definition. */
export async function updateFormKey(
  context: ServiceContext,
  request: UpdateFormRequest,
  call: HandlerContext,
) {
  const { database, audit } = context;
  const { formId } = request;
  const caller = callerOf(call);
  const { key, managedBy } = readFormKey(
    { key: request.key, managedBy: request.managedBy ?? '' },
    { keyless: caller.keyId === undefined },
  );
  if (!isId('form', formId)) throw notFound('form');
  const changed = await database.transaction(async (tx) => {
    await lockForm(tx, formId);
    const form = await changeableForm(tx, caller, formId);
    if (isKeyless(form)) {
      throw failed(Reason.CONFLICT, 'The form was made without an API key: files do not manage it');
    }
    const isKeyNew = key !== null && key !== form.key;
    if (isKeyNew && form.key !== null) throw failed(Reason.CONFLICT, `The form has the key ${form.key}`);
    if (isKeyNew) await refuseTakenKey(tx, caller.projectId, key);
    const change = { ...(isKeyNew && { key }), ...(request.managedBy !== undefined && { managedBy }) };
    await updateForm(tx, formId, change);
    await audit.change(tx, call, { formId });
    return { ...form, ...change };
  });
  return { form: formToMessage(changed) };
}
