import { setTimeout as sleep } from 'node:timers/promises';
import type { HandlerContext } from '@connectrpc/connect';
import { LRUCache } from 'lru-cache';
import { NextCall, Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import { networkOf } from '../../domain/addresses/ip-address.ts';
import { failed, limited } from '../../domain/errors/failure.ts';
import { newId } from '../../domain/ids.ts';
import { createWindowCounter, type WindowCounter } from '../../domain/limits/window-counter.ts';
import { readStreamToken } from '../../domain/links.ts';
import { DEFAULT_PROJECT } from '../../domain/scopes.ts';
import { hashSecret } from '../../domain/secrets/new-secrets.ts';
import type { SecretKey } from '../../domain/secrets/secret-key.ts';
import { bearerOf, type Caller, callerOf, clientAddressOf } from '../../rpc/context.ts';
import type { Database, Queries } from '../../store/database/database.ts';
import { createKeyCheck, findValidKey, touchKey } from '../../store/keys.ts';
import { findProject, getOrCreateProject, type Project } from '../../store/projects/projects.ts';
import type { Log } from '../../telemetry/log.ts';
import { createFreshCache, type FreshCache } from '../fresh-cache.ts';

/**
 * Finds the owner of a key, by data that is a second old at most, over any number of processes.
 *
 * Guessed keys must not load the database: past the limit of failures of an address, keys from there that are
 * not cached as valid are first looked up together, some times a second. A valid one waits for that once.
 */
export class KeyReader {
  readonly #options: KeyReaderOptions;
  readonly #callers: FreshCache<Caller | undefined>;
  readonly #tokenMakers: FreshCache<Caller | undefined>;
  /** Unknown keys and tokens by network: counted before each is looked up, taken back for one that is known. */
  readonly #failures: WindowCounter;
  readonly #isKey: (secretHash: string) => Promise<boolean>;
  readonly #knownClients = new LRUCache<string, true>({ max: MAX_KNOWN_CLIENTS });
  /** The ids of projects that callers without a key act in, by name: there are two at most. */
  readonly #projectIds = new Map<string, string>();
  /** The keys and tokens of calls that watch theirs. */
  readonly #watched = new Map<string, Watched>();

  constructor(options: KeyReaderOptions) {
    const { database, now } = options;
    this.#options = options;
    this.#callers = createFreshCache({
      load: (secretHash) => this.#load({ secretHash }),
      now,
      capacity: MAX_REMEMBERED_KEYS,
    });
    this.#tokenMakers = createFreshCache({
      load: (id) => this.#load({ id }),
      now,
      capacity: MAX_REMEMBERED_KEYS,
    });
    this.#failures = createWindowCounter({ now });
    this.#isKey = createKeyCheck(database);
  }

  /** Whose key this is; undefined if nobody's, expired or revoked. Throws RATE_LIMITED on guessing. */
  async find(text: string, clientAddress: string): Promise<Caller | undefined> {
    if (text.length > MAX_KEY_LENGTH) return undefined;
    const hash = hashSecret(text);
    if (!this.#options.limitGuesses) return this.#callers.get(hash);
    const network = networkOf(clientAddress);
    const isFresh = this.#callers.peek(hash) !== undefined;
    if (!isFresh) {
      // Counted before the look-up, so that a thousand at once are counted.
      const { hits, endsInMs } = this.#failures.count(network);
      if (hits > MAX_FAILURES && !(await this.#isKey(hash))) throw tooManyFailures(endsInMs);
    }
    const caller = await this.#callers.get(hash);
    if (caller === undefined) return undefined;
    if (!isFresh) this.#failures.takeBack(network);
    this.#knownClients.set(network, true);
    return caller;
  }

  /** Who has made a stream token. Throws INVALID_TOKEN once it or the key has ended. */
  async ofStreamToken(token: string): Promise<Caller> {
    const right = readStreamToken(this.#options.secretKey, token, this.#options.now());
    const maker = right && (await this.#tokenMakers.get(right.keyId));
    if (right === undefined || maker === undefined) {
      const message = 'The stream token has expired or its key was revoked: make another one';
      throw failed(Reason.INVALID_TOKEN, message, { nextCall: NextCall.WITH_KEY });
    }
    return { ...maker, streamOf: right.formId };
  }

  /**
   * Who has an access token that `check` finds valid, in the project of this name; undefined if it finds none. A check
   * that throws counts as an unknown key.
   */
  async ofToken(
    check: () => Promise<Token | undefined>,
    project: string,
    clientAddress: string,
  ): Promise<Caller | undefined> {
    const network = networkOf(clientAddress);
    const token = await check().catch((error: unknown) => {
      const { hits, endsInMs } = this.#failures.count(network);
      throw this.#options.limitGuesses && hits > MAX_FAILURES ? tooManyFailures(endsInMs) : error;
    });
    if (token === undefined) return undefined;
    this.#knownClients.set(network, true);
    const { subject, scopes, expiresAt } = token;
    const projectId = await this.#projectIdOf(project);
    return { projectId, project, keyId: `oauth:${subject}`, byToken: true, scopes, expiresAt };
  }

  /**
   * Watches the key of a call that goes on for long, together with all other such calls of that key. `ended` is aborted
   * with INVALID_KEY once it was revoked or has expired.
   */
  watch(call: HandlerContext): Disposable & { ended: AbortSignal } {
    const key = bearerOf(call.requestHeader.get('authorization'));
    // Where keys are not required.
    if (key === undefined) return { ended: new AbortController().signal, [Symbol.dispose]() {} };
    const known = this.#watched.get(key);
    const entry = known ?? { calls: new Set(), ended: new AbortController() };
    entry.calls.add(call);
    if (known === undefined) {
      this.#watched.set(key, entry);
      void this.#endWhenInvalid(key, call, entry);
    }
    return { ended: entry.ended.signal, [Symbol.dispose]: () => void entry.calls.delete(call) };
  }

  /**
   * Whether a valid key has come from a client, named by `networkOf`; if a great many came later, not known any more.
   */
  isKnownClient(client: string): boolean {
    return this.#knownClients.has(client);
  }

  /** The caller that stands for calls without a key where none is required. */
  async withoutKey(): Promise<Caller> {
    const projectId = await this.#projectIdOf(DEFAULT_PROJECT);
    return { projectId, project: DEFAULT_PROJECT, keyId: undefined, scopes: [] };
  }

  /** Makes a change of the keys by this process visible at once. */
  forget(): void {
    this.#callers.clear();
    this.#tokenMakers.clear();
  }

  async #load(by: { secretHash: string } | { id: string }): Promise<Caller | undefined> {
    const { database, now, log } = this.#options;
    const key = await findValidKey(database, by);
    const project = key && (await findProject(database, key.projectId));
    if (key === null || project === null) return undefined;
    if (key.lastUsedAt === null || now() - key.lastUsedAt.getTime() > LAST_USE_PRECISION_MS) {
      touchKey(database, key.id).catch((error: unknown) => {
        log.warn({ err: error, keyId: key.id }, 'could not note the use of a key');
      });
    }
    const { id: keyId, projectId, scopes, expiresAt } = key;
    return { projectId, project: project.name, keyId, scopes, ...(expiresAt !== null && { expiresAt }) };
  }

  async #projectIdOf(name: string): Promise<string> {
    const { database, now } = this.#options;
    const id = this.#projectIds.get(name) ?? (await projectNamed(database, name, now())).id;
    this.#projectIds.set(name, id);
    return id;
  }

  async #endWhenInvalid(key: string, call: HandlerContext, { calls, ended }: Watched): Promise<void> {
    try {
      while (calls.size > 0) {
        await sleep(CHECK_KEY_MS, undefined, { ref: false });
        await requireValidKey({ keys: this, now: this.#options.now }, call);
      }
    } catch (error) {
      ended.abort(error);
    }
    this.#watched.delete(key);
  }
}

/** The project of this name, made when it is new. */
export function projectNamed(queries: Queries, name: string, now: number): Promise<Project> {
  return getOrCreateProject(queries, { id: newId('prj', now), name, createdAt: new Date(now) });
}

function tooManyFailures(endsInMs: number) {
  return limited('unknown_keys', 'Too many unknown API keys from this address', endsInMs / 1000);
}

/** Throws INVALID_KEY if the key of a call that goes on for long was revoked or has expired meanwhile. */
export async function requireValidKey(
  { keys, now }: { keys: Pick<KeyReader, 'find' | 'ofStreamToken'>; now: () => number },
  call: HandlerContext,
): Promise<void> {
  const { byToken, expiresAt, streamOf } = callerOf(call);
  if (byToken === true) {
    if (Number(expiresAt) > now()) return;
    throw failed(Reason.INVALID_KEY, 'The access token has expired');
  }
  const key = bearerOf(call.requestHeader.get('authorization'));
  // Where keys are not required.
  if (key === undefined) return;
  if (streamOf !== undefined) return void (await keys.ofStreamToken(key));
  if ((await keys.find(key, clientAddressOf(call))) === undefined) {
    throw failed(Reason.INVALID_KEY, 'The API key is no longer valid');
  }
}

/**
 * A key may be revoked while its owner listens, and then the stream ends within a second, also if another process has
 * done so: a check finds what was read three quarters of a second ago at most, since keys are read anew after a half.
 */
const CHECK_KEY_MS = 250;

const MAX_REMEMBERED_KEYS = 10_000;

/** Unknown keys a minute and client address: far above a mistyped key in a running program's retries. */
const MAX_FAILURES = 60;

/** `last_used_at` is kept to about a minute, so that a busy key is not written on each call. */
const LAST_USE_PRECISION_MS = 60_000;

/** A MB. */
const MAX_KNOWN_CLIENTS = 10_000;

/** Ours have 47 characters; BOOTSTRAP_API_KEY may have 256. */
const MAX_KEY_LENGTH = 256;

type Watched = { calls: Set<HandlerContext>; ended: AbortController };

/** `subject` is the issuer's name for who has the token. */
type Token = { subject: string; scopes: readonly string[]; expiresAt: Date };

export type KeyReaderOptions = {
  database: Database;
  /** Signs stream tokens. */
  secretKey: SecretKey;
  now: () => number;
  log: Log;
  /** False: guessing keys is not limited, as in load tests. */
  limitGuesses: boolean;
};
