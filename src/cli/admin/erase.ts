import type { Admin } from '../../services/admin/admin.ts';
import { createProgress, RefusedError, type Terminal } from '../terminal.ts';

/**
 * Erases a project: revokes its keys, and deletes its forms with everything of them; the name alone stays. With a
 * value, it erases what names somebody by it: submissions and sessions in which it is an answer, or another text, as a whole.
 *
 * @throws RefusedError without `isConfirmed`: nothing brings back what is erased.
 */
export async function erase(
  admin: Admin,
  { project, value, isConfirmed }: { project: string; value: string | undefined; isConfirmed: boolean },
  terminal: Terminal,
): Promise<void> {
  if (!isConfirmed) {
    const what =
      value === undefined
        ? `Everything of the project ${project} will be permanently deleted, and its keys revoked.`
        : `Every submission and session of the project ${project} that contains ${value} will be permanently deleted.`;
    throw new RefusedError(`${what} If that is meant, add --yes.`);
  }
  if (value === undefined) await eraseProject(admin, project, terminal);
  else await eraseValue(admin, { project, value }, terminal);
}

async function eraseProject(admin: Admin, project: string, { note, now }: Terminal): Promise<void> {
  const progress = createProgress(note, now);
  let submissions = 0;
  for await (const { removed } of admin.eraseProject({ project })) {
    submissions += removed;
    progress(() => `Erasing ${project}: ${submissions} submissions are gone`);
  }
  note(`Erased ${project}: ${submissions} submissions, with its forms, webhooks, files and keys.`);
}

async function eraseValue(
  admin: Admin,
  { project, value }: { project: string; value: string },
  { note, now }: Terminal,
): Promise<void> {
  const progress = createProgress(note, now);
  let submissions = 0;
  let sessions = 0;
  let searched = 0;
  for await (const step of admin.eraseValue({ project, value })) {
    submissions += step.submissions;
    sessions += step.sessions;
    searched += step.searched;
    progress(
      () => `Looking through ${project}: ${submissions} submissions and ${sessions} sessions are gone`,
    );
  }
  note(
    `Looked at ${searched} rows of ${project}. Erased ${submissions} submissions and ${sessions} sessions, with their files and deliveries.`,
  );
}
