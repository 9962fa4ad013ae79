import { Reason } from '../../../gen/forms/v1/errors_pb.js';
import { newId } from '../../domain/ids.ts';
import { hashSecret } from '../../domain/secrets.ts';
import { createWindowCounter } from '../../domain/window-counter.ts';
import { type Caller, DEFAULT_PROJECT } from '../../rpc/context.ts';
import { failed } from '../../rpc/errors.ts';
import type { Database, Queries } from '../../store/database/database.ts';
import { findKeyByHash, touchKey } from '../../store/keys.ts';
import { findProject, getOrCreateProject, type Project } from '../../store/projects.ts';
import type { Log } from '../../telemetry/log.ts';
import { createFreshCache } from '../fresh-cache.ts';

/**
 * Finds the owner of a key, by data that is a second old at most, over any number of processes.
 *
 * Guessed keys must not load the database: unknown keys are counted by client address, and past the
 * limit only keys that are cached already are accepted.
 */
export function createKeyReader({ database, now, log, limitGuesses }: KeyReaderOptions): KeyReader {
  const callers = createFreshCache<Caller | undefined>({ load, now, capacity: MAX_REMEMBERED_KEYS });
  const guesses = createWindowCounter({ now });
  let callerWithoutKey: Caller | undefined;

  async function load(hash: string): Promise<Caller | undefined> {
    const key = await findKeyByHash(database, hash);
    const project = key && (await findProject(database, key.projectId));
    if (key === null || project === null) return undefined;
    if (key.lastUsedAt === null || now() - key.lastUsedAt.getTime() > LAST_USE_PRECISION_MS) {
      touchKey(database, key.id).catch((error: unknown) => {
        log.warn({ err: error, keyId: key.id }, 'could not note the use of a key');
      });
    }
    return { projectId: key.projectId, project: project.name, keyId: key.id, scopes: key.scopes };
  }

  return {
    async find(text, clientAddress) {
      if (text.length > MAX_KEY_LENGTH) return undefined;
      const hash = hashSecret(text);
      if (!callers.has(hash) && limitGuesses) {
        const { hits, endsInMs } = guesses.peek(clientAddress);
        if (hits >= MAX_GUESSES) throw tooManyGuesses(endsInMs);
        const caller = await callers.get(hash);
        if (caller === undefined) guesses.count(clientAddress);
        return caller;
      }
      return callers.get(hash);
    },
    async withoutKey() {
      if (callerWithoutKey === undefined) {
        const project = await projectNamed(database, DEFAULT_PROJECT, now());
        callerWithoutKey = { projectId: project.id, project: DEFAULT_PROJECT, keyId: undefined, scopes: [] };
      }
      return callerWithoutKey;
    },
    forget: () => callers.clear(),
  };
}

/** The project of this name, made when it is new. */
export function projectNamed(queries: Queries, name: string, now: number): Promise<Project> {
  return getOrCreateProject(queries, { id: newId('prj', now), name, createdAt: new Date(now) });
}

function tooManyGuesses(endsInMs: number) {
  return failed(Reason.RATE_LIMITED, 'Too many unknown API keys from this address', {
    retryAfter: Math.ceil(endsInMs / 1000),
  });
}

const MAX_REMEMBERED_KEYS = 10_000;

/** Unknown keys a minute and client address: far above a mistyped key in a running program's retries. */
const MAX_GUESSES = 60;

/** `last_used_at` is kept to about a minute, so that a busy key is not written on each call. */
const LAST_USE_PRECISION_MS = 60_000;

/** Ours have 47 characters; BOOTSTRAP_API_KEY may have 256. */
const MAX_KEY_LENGTH = 256;

export type KeyReader = {
  /** Whose key this is; undefined if nobody's, expired or revoked. Throws RATE_LIMITED on guessing. */
  find(text: string, clientAddress: string): Promise<Caller | undefined>;
  /** The caller that stands for calls without a key where none is required. */
  withoutKey(): Promise<Caller>;
  /** Makes a change of the keys by this process visible at once. */
  forget(): void;
};

export type KeyReaderOptions = {
  database: Database;
  now: () => number;
  log: Log;
  /** False: guessing keys is not limited, as in load tests. */
  limitGuesses: boolean;
};
