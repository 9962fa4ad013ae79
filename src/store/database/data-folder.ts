import { randomUUID } from 'node:crypto';
import {
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { StartError } from './faults.ts';

/**
 * Makes the data folder if need be and claims it for this process, by a lock file in it.
 *
 * A lock whose process has died is taken over, also one left by a machine or container that is gone.
 *
 * @throws StartError if another process uses the folder or it can't be written.
 */
export async function claimDataFolder(folder: string): Promise<{ release(): void }> {
  const lockFile = join(resolve(folder), LOCK_NAME);
  if (held.has(lockFile)) throw inUse(folder, process.pid);

  const owner = JSON.stringify(ownIdentity());
  try {
    mkdirSync(folder, { recursive: true });
    while (!tryCreate(lockFile, owner)) {
      const found = readLock(lockFile);
      if (found === undefined) continue;
      if (await isAlive(lockFile, found.owner)) throw inUse(folder, found.owner.pid);
      discard(lockFile, found.text);
    }
  } catch (error) {
    if (error instanceof StartError) throw error;
    throw new StartError(`The data folder ${folder} can't be written: ${messageOf(error)}.`, {
      cause: error,
    });
  }

  held.add(lockFile);
  const heartbeat = setInterval(() => touch(lockFile), HEARTBEAT_MS).unref();
  return {
    release: () => {
      clearInterval(heartbeat);
      held.delete(lockFile);
      if (readLock(lockFile)?.text === owner) rmSync(lockFile, { force: true });
    },
  };
}

const LOCK_NAME = 'in-use.json';
const HEARTBEAT_MS = 2_000;
/** A database in the same process can hold the event loop up for a while; a live holder writes within this. */
const HEARTBEAT_PATIENCE_MS = 6_000;

/** The folders of this process: its own identity would otherwise read as a lock it left behind. */
const held = new Set<string>();

/** Creates the file whole or not at all, so that nobody reads half a lock. */
function tryCreate(lockFile: string, owner: string): boolean {
  const draft = `${lockFile}.${randomUUID()}`;
  writeFileSync(draft, owner);
  try {
    linkSync(draft, lockFile);
    return true;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    throw error;
  } finally {
    rmSync(draft, { force: true });
  }
}

function readLock(lockFile: string): { text: string; owner: Owner } | undefined {
  try {
    const text = readFileSync(lockFile, 'utf8');
    return { text, owner: parseOwner(text) };
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/**
 * Takes a dead lock away. Two processes may find the same one: only what was judged dead is removed, a
 * fresh lock that came in between is put back.
 */
function discard(lockFile: string, deadText: string): void {
  const aside = `${lockFile}.${randomUUID()}`;
  try {
    renameSync(lockFile, aside);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return;
    throw error;
  }
  if (readFileSync(aside, 'utf8') !== deadText) tryCreate(lockFile, readFileSync(aside, 'utf8'));
  rmSync(aside, { force: true });
}

async function isAlive(lockFile: string, owner: Owner): Promise<boolean> {
  if (owner.host !== hostname()) return beats(lockFile);
  const started = startOf(owner.pid);
  if (started === undefined) return false;
  return owner.started === '' || started === '' || started === owner.started;
}

/** Whether the holder on another machine (or container) still touches the file. */
async function beats(lockFile: string): Promise<boolean> {
  const before = modifiedAt(lockFile);
  await sleep(HEARTBEAT_PATIENCE_MS);
  return modifiedAt(lockFile) !== before;
}

function ownIdentity(): Owner {
  return { pid: process.pid, host: hostname(), started: startOf(process.pid) ?? '' };
}

/**
 * When a process began, in a form only good for comparison, so that a reused process id isn't taken
 * for the dead holder; empty where the system doesn't tell, undefined if there is no such process.
 */
function startOf(pid: number): string | undefined {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (codeOf(error) === 'ESRCH') return undefined;
  }
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name may hold spaces and brackets; the start time is the 20th word after its closing one.
    return `${boot}/${stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]}`;
  } catch {
    return '';
  }
}

function parseOwner(text: string): Owner {
  try {
    const { pid, host, started } = JSON.parse(text);
    if (Number.isInteger(pid) && typeof host === 'string' && typeof started === 'string') {
      return { pid, host, started };
    }
  } catch {
    // Not ours: judged by its heartbeat, as any lock we know nothing of.
  }
  return { pid: 0, host: '', started: '' };
}

function touch(lockFile: string): void {
  try {
    const now = new Date();
    utimesSync(lockFile, now, now);
  } catch {
    // The folder went away under us; the database will say so.
  }
}

function modifiedAt(lockFile: string): number {
  return statSync(lockFile, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

function inUse(folder: string, pid: number): StartError {
  return new StartError(
    `The data folder ${folder} is in use by process ${pid}. Stop it first, or set DATA_DIR.`,
  );
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

type Owner = { pid: number; host: string; started: string };
