import type { HandlerContext } from '@connectrpc/connect';
import { Reason } from '../../../gen/forms/v1/errors_pb.js';
import { demoFormId, isId } from '../../domain/ids.ts';
import { callerOf } from '../../rpc/context.ts';
import { failed, notFound } from '../../rpc/errors.ts';
import { deleteForm as markDeleted, removeRowsOfForm } from '../../store/forms/form-removal.ts';
import type { ServiceContext } from '../context.ts';

/**
 * Deletes an archived form, and removes at once what can be removed within `REMOVAL_MS`; a sweep of the
 * delivery loop removes the rest.
 */
export async function deleteForm(
  context: ServiceContext,
  formId: string,
  call: HandlerContext,
): Promise<void> {
  const { database, uploads, settings, now, audit } = context;
  const { projectId } = callerOf(call);
  if (!isId('form', formId)) throw notFound('form');
  if (formId === demoFormId) throw failed(Reason.CONFLICT, "The demo form can't be deleted");

  const outcome = await database.transaction(async (tx) => {
    const marked = await markDeleted(tx, projectId, formId);
    if (marked === 'deleted') await audit.change(tx, call, { formId });
    return marked;
  });
  if (outcome === 'not_found') throw notFound('form');
  if (outcome === 'not_archived') throw failed(Reason.CONFLICT, 'Only an archived form can be deleted');
  context.forms.forget(formId);

  const announcement = { at: now(), schedule: settings.retrySchedule };
  const until = performance.now() + REMOVAL_MS;
  for (let more = true; more && performance.now() < until; ) {
    const removed = await removeRowsOfForm(database, { formId, limit: GROUP }, announcement);
    for (const id of removed.uploadIds) await uploads.remove(id);
    more = removed.more;
  }
  context.notifyWorkers();
}

/** A caller waits: forms of a few thousand submissions are done by then. */
const REMOVAL_MS = 2_000;

/** Rows of one statement: some milliseconds. */
const GROUP = 100;
