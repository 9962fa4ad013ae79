import type { HandlerContext } from '@connectrpc/connect';
import { notFound } from '../../rpc/errors.ts';
import { removeSubmission } from '../../store/submissions/submission-removal.ts';
import type { Submission } from '../../store/submissions/submissions.ts';
import { listUploadIds } from '../../store/uploads.ts';
import type { ServiceContext } from '../context.ts';

/**
 * Deletes a submission that the caller may delete. Files go first: if the process dies in between, calling again
 * removes the rest.
 */
export async function deleteStored(
  { database, uploads, forms, settings, now, notifyWorkers, audit }: ServiceContext,
  { id, formId, projectId }: Submission,
  call: HandlerContext,
): Promise<void> {
  for (const uploadId of await listUploadIds(database, id)) await uploads.remove(uploadId);
  const announcement = { at: now(), schedule: settings.retrySchedule };
  await database.transaction(async (tx) => {
    const removed = await removeSubmission(tx, { projectId, id }, announcement);
    if (removed === null) throw notFound('submission');
    await audit.change(tx, call, { projectId, resource: id, formId });
  });
  notifyWorkers();
  forms.forget(formId);
}
