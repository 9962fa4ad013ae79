import type { Admin } from '../../services/admin/admin.ts';
import type { ChainPlace } from '../../services/admin/audit.ts';
import { RefusedError } from '../errors.ts';
import { createProgress } from './progress.ts';
import type { Terminal } from './terminal.ts';

/**
 * Checks that nothing in the audit log of any project was changed, removed or put in since it was stored, and prints
 * where each chain ends.
 *
 * @throws RefusedError if something was, after all chains are checked.
 */
export async function verifyAudit(admin: Admin, { print, note, now }: Terminal): Promise<void> {
  const progress = createProgress(note, now);
  let checked = 0;
  let broken = 0;
  for (let projectId: string | null = null; ; ) {
    const chain: Awaited<ReturnType<Admin['nextAuditChain']>> = await admin.nextAuditChain({
      after: projectId,
    });
    if (chain.projectId === null) break;
    projectId = chain.projectId;
    const name = chain.name ?? (projectId === '' ? 'installation' : projectId);
    for (let after: ChainPlace | null = null; ; ) {
      const step: Awaited<ReturnType<Admin['checkAudit']>> = await admin.checkAudit({ projectId, after });
      checked += step.checked;
      progress(() => `Checking the audit log of ${name}: ${checked} entries`);
      after = step.next;
      if (step.problem !== null) {
        broken += 1;
        print(`${name}: BROKEN at entry ${step.problem.sequence}. ${step.problem.message}`);
      }
      if (step.end !== undefined) print(`${name}: ${describe(step.end)}`);
      if (after === null) break;
    }
  }
  const chains = broken === 1 ? 'The chain of 1 project is' : `The chains of ${broken} projects are`;
  if (broken > 0) throw new RefusedError(`${chains} broken: what the audit log says is not what was stored.`);
  note(
    `Checked ${checked} entries. Keep the hashes elsewhere: who can change the database can make a new chain.`,
  );
}

function describe({ from, sequence, hash }: ChainPlace & { from: number }): string {
  if (sequence < from) return `no entries are left of ${sequence}, hash ${hash}`;
  return `entries ${from} to ${sequence}, hash ${hash}`;
}
