import { notFound } from '../../rpc/errors.ts';
import { removeSubmission } from '../../store/submission-removal.ts';
import type { Submission } from '../../store/submissions.ts';
import { listUploadIds } from '../../store/uploads.ts';
import type { ServiceContext } from '../context.ts';

/**
 * Deletes a submission that the caller may delete. Files go first: if the process dies in between, calling again
 * removes the rest.
 */
export async function deleteStored(
  { database, uploads, forms, settings, now, notifyWorkers }: ServiceContext,
  { id, formId, projectId }: Submission,
): Promise<void> {
  for (const uploadId of await listUploadIds(database, id)) await uploads.remove(uploadId);
  const announcement = { at: now(), schedule: settings.retrySchedule };
  const removed = await database.transaction((tx) => removeSubmission(tx, { projectId, id }, announcement));
  if (removed === null) throw notFound('submission');
  notifyWorkers();
  forms.forget(formId);
}
