import type { z } from 'zod';
import { type ChainedEntry, firstHashOf, hashOf, INSTALLATION } from '../../domain/audit/entry.ts';
import { findChain, findNextChain, readChain } from '../../store/audit/audit-log.ts';
import type { Chain } from '../../store/audit/audit-table.ts';
import type { Queries } from '../../store/database/database.ts';
import { findProject } from '../../store/projects/projects.ts';
import { type AdminContext, adminEntry } from './context.ts';
import type { chainRequest, checkedChain, checkRequest, foundChain } from './messages.ts';

/** Checks the chains of the audit log, and records what concerns no project. */
export function createAdminAudit(context: AdminContext): AdminAudit {
  const { database, auditWriter } = context;
  return {
    async nextAuditChain({ after }) {
      const projectId = await findNextChain(database, after);
      const project = projectId === null ? null : await findProject(database, projectId);
      return { projectId, name: project?.name ?? null };
    },

    async checkAudit({ projectId, after }) {
      return checkChain(database, projectId, after ?? undefined);
    },

    noteBackup() {
      auditWriter.note(adminEntry(context, { projectId: INSTALLATION, action: 'installation.backed_up' }));
    },
  };
}

/**
 * Checks the chain of a project from the entry after `after` on, or from its first, for `TURN_MS`: that no entry is
 * changed, missing or added. Entries that are appended or removed for their age meanwhile are no problem.
 */
export async function checkChain(
  db: Queries,
  projectId: string,
  after: ChainPlace | undefined,
): Promise<CheckedChain> {
  const chain = await findChain(db, projectId);
  if (chain === null) return broken(0, 'There are entries, but the end of the chain is gone.');
  if (chain.cutSequence === 0 && chain.cutHash !== firstHashOf(projectId)) {
    return broken(1, 'The chain does not begin with this project.');
  }
  let place = after ?? placeAtCut(chain);
  let checked = 0;
  const until = performance.now() + TURN_MS;
  while (place.sequence < chain.sequence) {
    if (performance.now() > until) return { checked, next: place, problem: null };
    const entries = await readChain(db, projectId, { after: place.sequence, limit: GROUP });
    const known = entries.filter(({ sequence }) => sequence <= chain.sequence);
    const { problem, last } = checkGroup(known, place);
    checked += last.sequence - place.sequence;
    place = last;
    if (problem === undefined) continue;
    const now = await findChain(db, projectId);
    if (now === null || now.cutSequence <= place.sequence)
      return broken(place.sequence + 1, problem, checked);
    place = placeAtCut(now);
  }
  if (place.sequence === chain.sequence && place.hash !== chain.hash) {
    return broken(place.sequence, 'It is not the last one that was stored.', checked);
  }
  const [beyond] = await readChain(db, projectId, { after: place.sequence, limit: 1 });
  const end = beyond && (await findChain(db, projectId));
  if (beyond !== undefined && (end?.sequence ?? 0) < beyond.sequence) {
    return broken(beyond.sequence, 'It is beyond the end of the chain.', checked);
  }
  return { checked, next: null, problem: null, end: { from: chain.cutSequence + 1, ...place } };
}

/** `last` is the place up to which all is well. */
function checkGroup(entries: ChainedEntry[], begin: ChainPlace): { problem?: string; last: ChainPlace } {
  let last = begin;
  if (entries.length === 0) return { problem: 'It is missing.', last };
  for (const entry of entries) {
    const { sequence, hash } = entry;
    if (sequence !== last.sequence + 1) return { problem: 'It is missing.', last };
    if (entry.previousHash !== last.hash) return { problem: 'It does not follow the one before it.', last };
    if (hashOf(entry) !== hash) return { problem: 'It was changed after it was stored.', last };
    last = { sequence, hash };
  }
  return { last };
}

function placeAtCut({ cutSequence, cutHash }: Chain): ChainPlace {
  return { sequence: cutSequence, hash: cutHash };
}

function broken(sequence: number, message: string, checked = 0): CheckedChain {
  return { checked, next: null, problem: { sequence, message } };
}

/** A caller of the socket waits: it shows how far the check has come between calls. */
const TURN_MS = 1_000;

/** Rows of one statement: some milliseconds. */
const GROUP = 500;

/** An entry of a chain that is known to be right. */
export type ChainPlace = { sequence: number; hash: string };

/** `next` is where to go on; null: it is done. `end` is what was checked if nothing is wrong. */
export type CheckedChain = {
  checked: number;
  next: ChainPlace | null;
  /** The first entry that is wrong. */
  problem: { sequence: number; message: string } | null;
  end?: ChainPlace & { from: number };
};

export type AdminAudit = {
  /** The chain of the audit log after that of a project, or the first. */
  nextAuditChain(request: z.output<typeof chainRequest>): Promise<z.output<typeof foundChain>>;
  /** Checks a chain of the audit log, call by call as long as there is a `next`. */
  checkAudit(request: z.output<typeof checkRequest>): Promise<z.output<typeof checkedChain>>;
  /** Records that everything was copied. */
  noteBackup(): void;
};
