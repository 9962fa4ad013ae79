import type { Admin } from '../../services/admin/admin.ts';
import { RefusedError } from '../errors.ts';
import { createProgress } from './progress.ts';
import type { Terminal } from './terminal.ts';

/**
 * Erases a project: revokes its keys, and deletes its forms with everything of them. The name alone stays.
 *
 * @throws RefusedError without `isConfirmed`: nothing brings a project back.
 */
export async function eraseProject(
  admin: Admin,
  { project, isConfirmed }: { project: string; isConfirmed: boolean },
  { note, now }: Terminal,
): Promise<void> {
  if (!isConfirmed) {
    throw new RefusedError(
      `Everything of the project ${project} will be deleted, and its keys revoked, for ever. If that is meant, add --yes.`,
    );
  }
  const progress = createProgress(note, now);
  let submissions = 0;
  for (let more = true; more; ) {
    const step = await admin.eraseProject({ project });
    submissions += step.removed;
    more = step.more;
    progress(() => `Erasing ${project}: ${submissions} submissions are gone`);
  }
  note(`Erased ${project}: ${submissions} submissions, with its forms, webhooks, files and keys.`);
}
