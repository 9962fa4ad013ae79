import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { errorMessage, hasCode, StartError } from '../../domain/errors/system-errors.ts';

/**
 * Makes the data folder if need be, readable by its owner alone, and locks it for this process.
 *
 * The lock is an exclusive transaction on a SQLite file in the folder. The operating system holds it and frees
 * it with the process, however that ends; it also holds between containers that share a volume. `onLost` is
 * called if the file is removed or replaced meanwhile: another process may then use the folder, so nothing
 * more may be written to it.
 *
 * @throws StartError if another process uses the folder or it can't be written.
 */
export function lockDataFolder(folder: string, onLost: () => void = stopWriting): DataFolderLock {
  const file = join(resolve(folder), LOCK_FILE);
  const lock = take(folder, file);
  const { dev, ino } = statSync(file);
  writeFileSync(join(folder, OWNER_FILE), `${process.pid} ${hostname()}`, { mode: 0o600 });

  const watch = setInterval(() => {
    const found = statSync(file, { throwIfNoEntry: false });
    // On another disk, to which a symbolic link may lead by now, a file can have the same number.
    if (found?.ino === ino && found.dev === dev) return;
    clearInterval(watch);
    onLost();
  }, CHECK_MS).unref();
  const release = () => {
    clearInterval(watch);
    rmSync(join(folder, OWNER_FILE), { force: true });
    lock.close();
  };
  return { release, [Symbol.dispose]: release };
}

/** Called by a timer, so that nothing catches it and the process ends. */
function stopWriting(): never {
  throw new Error('The lock on the data folder was lost. Another process may use the folder');
}

/** Makes DATA_DIR unless it is there. Throws a `StartError` that names it. */
export function makeDataFolder(folder: string): void {
  try {
    makeFolder(folder);
  } catch (error) {
    throw new StartError(`DATA_DIR: can't make ${folder}: ${errorMessage(error)}`);
  }
}

/**
 * Makes a folder and those above it, for its owner alone, unless they are there. Node's own way to do so (`recursive`)
 * never ends where a folder takes no others, as /proc does.
 */
export function makeFolder(folder: string): void {
  if (existsSync(folder)) return;
  makeFolder(dirname(resolve(folder)));
  try {
    mkdirSync(folder, { mode: OWNER_ONLY });
  } catch (error) {
    // Another process may have made it meanwhile.
    if (!hasCode(error, 'EEXIST')) throw error;
  }
}

function take(folder: string, file: string): DatabaseSync {
  let lock: DatabaseSync | undefined;
  try {
    makeFolder(folder);
    if ((statSync(folder).mode & 0o777) !== OWNER_ONLY) chmodSync(folder, OWNER_ONLY);
    lock = new DatabaseSync(file, { timeout: 0 });
    lock.exec('begin exclusive');
    return lock;
  } catch (error) {
    lock?.close();
    const isLocked = error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY;
    const why = isLocked
      ? `is in use by ${ownerOf(folder)}. Stop it first, or set DATA_DIR.`
      : `can't be written: ${errorMessage(error)}.`;
    throw new StartError(`The data folder ${folder} ${why}`, { cause: error });
  }
}

/** The holder, as it has named itself. It may not have done so yet. */
function ownerOf(folder: string): string {
  try {
    const [pid, host] = readFileSync(join(folder, OWNER_FILE), 'utf8').split(' ');
    return host === hostname() ? `process ${pid}` : `process ${pid} on ${host}`;
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return 'another process';
    throw error;
  }
}

/**
 * The lock. Nothing else in this process may open it: closing any descriptor of a file drops the process's
 * locks on it.
 */
const LOCK_FILE = 'in-use.sqlite';
/** Names the process that holds the lock, for the message that a second one gets. */
const OWNER_FILE = 'in-use.txt';

const OWNER_ONLY = 0o700;

/** How long a process may write after somebody has removed its lock, in milliseconds. */
const CHECK_MS = 500;

/** SQLite's code for a file that another connection has locked. */
const SQLITE_BUSY = 5;

type DataFolderLock = Disposable & { release(): void };
