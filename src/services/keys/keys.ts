import type { MessageInitShape } from '@bufbuild/protobuf';
import { type Duration, durationMs } from '@bufbuild/protobuf/wkt';
import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import { Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import { type CreateKeyRequest, KeySchema, type KeysService } from '../../../gen/headlessforms/v1/keys_pb.js';
import { type NewEntry, systemEntry } from '../../domain/audit.ts';
import { failed, insufficientScope, invalid, notFound } from '../../domain/errors/failure.ts';
import { custom, type Violation } from '../../domain/errors/violations.ts';
import { oneOf } from '../../domain/errors/zod-messages.ts';
import { newId } from '../../domain/ids.ts';
import { keyLimits, pageSizes, projectPattern } from '../../domain/limits/limits.ts';
import { rowToMessage } from '../../domain/messages.ts';
import { scopes as allScopes, DEFAULT_PROJECT, holds, isScope, withinScopes } from '../../domain/scopes.ts';
import { hashSecret, newApiKey } from '../../domain/secrets/new-secrets.ts';
import { type Caller, callerOf } from '../../rpc/context.ts';
import type { AuditWriter } from '../../store/audit/audit-writer.ts';
import type { Database, Transaction } from '../../store/database/database.ts';
import {
  findKey,
  holdKey,
  insertFirstKey,
  insertKey,
  type Key,
  listKeys,
  listKeysMadeBy,
  registerKey,
  revokeKey,
} from '../../store/keys.ts';
import type { ServiceContext } from '../context.ts';
import { keepReply } from '../idempotency.ts';
import { pageRequestOf, requireFound, secondsProblems, textProblems } from '../request-values.ts';
import { projectNamed } from './key-reader.ts';

/** Makes, lists and revokes API keys. */
export function keysService(context: ServiceContext): ServiceImpl<typeof KeysService> {
  const { database, keys, audit } = context;
  return {
    createKey: (request, call) => createKey(context, request, call),

    async listKeys(request, call) {
      const { projectId, project } = callerOf(call);
      const page = await listKeys(database, projectId, pageRequestOf(request, 'key', pageSizes.max));
      return {
        keys: page.items.map((key) => keyToMessage(key, project)),
        nextPageToken: page.nextCursor ?? '',
      };
    },

    async deleteKey({ keyId, revokeChildren }, call) {
      const caller = callerOf(call);
      const key = await requireFound('key', keyId, () => findKey(database, caller.projectId, keyId));
      const lacked = key.scopes.find((scope) => !isScope(scope) || !holds(caller.scopes, scope));
      if (lacked !== undefined) throw insufficientScope(lacked, 'to revoke a key that has it');
      await database.transaction(async (tx) => {
        const children = revokeChildren ? 'revoke' : 'refuse';
        const revoked = await revokeKeys(tx, keyId, children, 'revoke them, too, with children=revoke');
        for (const { id: resource, projectId } of revoked)
          await audit.change(tx, call, { projectId, resource });
      });
      keys.forget();
      return {};
    },
  };
}

/**
 * Revokes a key, and perhaps those that it made, and returns what was revoked. Throws NOT_FOUND, and CONFLICT if
 * there are some that still work and they are to be refused; `advice` says what the caller can do then.
 */
export async function revokeKeys(
  tx: Transaction,
  keyId: string,
  children: 'refuse' | 'revoke' | 'keep',
  advice: string,
): Promise<Key[]> {
  const revoked = await revokeKey(tx, keyId, { children: children === 'revoke' });
  if (revoked.length === 0) throw notFound('key');
  const left = children === 'refuse' ? await listKeysMadeBy(tx, keyId) : [];
  if (left.length === 0) return revoked;
  const named = left.slice(0, MAX_NAMED).map(({ id }) => id);
  if (left.length > MAX_NAMED) named.push(`and ${left.length - MAX_NAMED} more`);
  throw failed(
    Reason.CONFLICT,
    `The key made ${left.length === 1 ? 'a key that still works' : 'keys that still work'}: ${named.join(', ')}; ${advice}`,
  );
}

const MAX_NAMED = 20;

/**
 * Makes a key with every scope in the default project if there is no key at all, and returns its text. Of instances
 * that start at once, one makes it.
 */
export async function makeFirstKey({ database, auditWriter, now }: KeyMaker): Promise<string | undefined> {
  const project = await projectNamed(database, DEFAULT_PROJECT, now());
  const { key, secret } = newKey({ project, name: 'first key', scopes: ['*'] }, now());
  const made = await database.transaction(async (tx) => {
    const isFirst = await insertFirstKey(tx, key);
    if (isFirst) await auditWriter.store(tx, madeByService(key, 'first key'));
    return isFirst;
  });
  return made ? secret : undefined;
}

/**
 * Registers a key with every scope in the default project, unless the database knows it or it was revoked, and so
 * is worth nothing.
 */
export async function registerBootstrapKey(
  { database, auditWriter, now }: KeyMaker,
  text: string,
): Promise<{ isRevoked: boolean }> {
  const project = await projectNamed(database, DEFAULT_PROJECT, now());
  const { key } = newKey({ project, name: 'BOOTSTRAP_API_KEY', scopes: ['*'] }, now(), text);
  const outcome = await database.transaction(async (tx) => {
    const registered = await registerKey(tx, key);
    if (registered === 'registered') await auditWriter.store(tx, madeByService(key, 'BOOTSTRAP_API_KEY'));
    return registered;
  });
  return { isRevoked: outcome === 'revoked' };
}

function madeByService({ id, projectId, createdAt }: Key, detail: string): NewEntry {
  return systemEntry({ projectId, at: createdAt.getTime(), action: 'key.created', resource: id, detail });
}

/** A key to be stored, and its text. `expiresIn` is a number of milliseconds. */
export function newKey(
  { project, name, scopes, expiresIn, createdBy }: NewKey,
  time: number,
  secret: string = newApiKey(),
): { key: Key; secret: string } {
  const key = {
    id: newId('key', time),
    projectId: project.id,
    name,
    secretHash: hashSecret(secret),
    last4: secret.slice(-4),
    scopes,
    createdAt: new Date(time),
    expiresAt: expiresIn === undefined ? null : new Date(time + expiresIn),
    lastUsedAt: null,
    createdBy: createdBy ?? null,
  };
  return { key, secret };
}

/** What is wrong with a key that `caller` wants to make in the project of this name. */
export function newKeyProblems(
  { name, scopes, project, expiresIn }: WantedKey,
  caller: Pick<Caller, 'project' | 'scopes' | 'expiresAt'>,
  time: number,
): Violation[] {
  const left = lifeLeft(caller, time);
  const most = left === undefined ? keyLimits.seconds : Math.floor(left / 1000);
  return [
    ...textProblems(name, 'name', { max: keyLimits.name, needed: true }),
    ...scopeProblems(scopes, caller),
    ...projectProblems(project, caller),
    ...secondsProblems(expiresIn, 'expires_in', { min: 1, max: most }),
  ];
}

async function createKey(context: ServiceContext, request: CreateKeyRequest, call: HandlerContext) {
  const { database, audit, now } = context;
  const { name, scopes } = request;
  const caller = callerOf(call);
  const project = request.project === '' ? caller.project : request.project;
  const time = now();
  const violations = newKeyProblems({ name, scopes, project, expiresIn: request.expiresIn }, caller, time);
  if (violations.length > 0) throw invalid(violations);

  const owner =
    project === caller.project ? { id: caller.projectId } : await projectNamed(database, project, time);
  const expiresIn = request.expiresIn ? durationMs(request.expiresIn) : lifeLeft(caller, time);
  const createdBy = caller.keyId;
  const { key, secret } = newKey({ project: owner, name, scopes, expiresIn, createdBy }, time);
  return database.transaction(async (tx) => {
    if (createdBy !== undefined && !(await holdKey(tx, createdBy))) {
      throw failed(Reason.INVALID_KEY, 'The API key is no longer valid');
    }
    await insertKey(tx, key);
    const detail = scopes.join(',');
    await audit.change(tx, call, { projectId: key.projectId, resource: key.id, detail });
    return keepReply(tx, call, { key: keyToMessage(key, project), secret });
  });
}

function scopeProblems(scopes: string[], caller: Pick<Caller, 'scopes'>): Violation[] {
  if (scopes.length === 0) {
    return [{ path: 'scopes', code: 'too_small', message: 'Expected at least one scope' }];
  }
  if (scopes.length > allScopes.length) {
    return [{ path: 'scopes', code: 'too_big', message: `Expected at most ${allScopes.length} scopes` }];
  }
  return scopes.flatMap((scope, index): Violation[] => {
    const path = `scopes[${index}]`;
    if (!isScope(scope)) return [{ path, code: 'invalid_enum_value', message: oneOf(allScopes, scope) }];
    if (scopes.indexOf(scope) < index) return [custom(path, 'The scope is named twice')];
    if (withinScopes([scope], caller.scopes)) return [];
    return [custom(path, `Your own key lacks the scope ${scope}`)];
  });
}

function projectProblems(project: string, caller: Pick<Caller, 'project' | 'scopes'>): Violation[] {
  const path = 'project';
  if (project === caller.project) return [];
  if (!projectPattern.test(project)) {
    const message = "Expected 1 to 64 letters, digits, '.', '_' or '-'";
    return [{ path, code: 'invalid_string', message }];
  }
  if (caller.project === DEFAULT_PROJECT && caller.scopes.includes('*')) return [];
  return [custom(path, `Only a * key of the project ${DEFAULT_PROJECT} may name another project`)];
}

/** A key as replies have it, without its text. */
export function keyToMessage(key: Key, project: string): MessageInitShape<typeof KeySchema> {
  return rowToMessage(KeySchema, key, { project });
}

/** How long a caller's key still works, in milliseconds; undefined if it has no end. No key outlives its maker. */
function lifeLeft({ expiresAt }: Pick<Caller, 'expiresAt'>, time: number): number | undefined {
  return expiresAt && Math.max(1000, expiresAt.getTime() - time);
}

/** `expiresIn` is in milliseconds; without it a key has no end. */
type NewKey = {
  project: { id: string };
  name: string;
  scopes: string[];
  expiresIn?: number | undefined;
  /** The id of the key that makes it. */
  createdBy?: string | undefined;
};

type WantedKey = { name: string; scopes: string[]; project: string; expiresIn: Duration | undefined };

type KeyMaker = { database: Database; auditWriter: Pick<AuditWriter, 'store'>; now: () => number };
